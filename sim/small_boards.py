"""Packages of small simulated boards, with a clock so slow that waits take few cycles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbq_hw import chips, file, package
from lbq_hw.compiler import Program, compile_network, smallest_for
from lbq_hw.isa import link
from lbq_hw.network import Network
from lbq_hw.package import Package
from lbq_hw.sizing.door import opening_of

CLOCK_HZ = 1_000_000
WORD_BITS = 16
"""Word width of the external memory."""


def on_chip(network: Network, folder: Path, *, queue: bool, lanes: int = 4) -> Package:
    """A core with a door, and its program in the bitstream."""
    program = compile_network(network, smallest_for(network, lanes=lanes))
    return _packed(program, network, folder, queue=queue, clock_hz=CLOCK_HZ, baked=True)


def external(network: Network, folder: Path, *, lanes: int = 8) -> Package:
    """A core with external memory, and a door with a queue; at the usual clock of its chip."""
    chip, clock_hz = chips.usual(WORD_BITS)
    room = {"weight_rows": 256, "layers": 8}  # fewer would mean many passes
    config = smallest_for(network, lanes=lanes, word=lanes, external=WORD_BITS, **room)
    program = compile_network(network, config)
    memory = {"tape": program.tape, "chip": chip}
    return _packed(program, network, folder, queue=True, clock_hz=clock_hz, baked=False, **memory)


def _packed(
    program: Program,
    network: Network,
    folder: Path,
    *,
    queue: bool,
    clock_hz: int,
    baked: bool,
    **memory: Any,
) -> Package:
    """The package, at the highest rate of the line."""
    opening = opening_of(program, queue=queue)
    if opening is None:
        raise ValueError(f"{network.name} has too many outputs for a door")
    model = folder / "net.lbq"
    file.save(network, model)
    return package.write(
        folder / "package",
        board="sim",
        config=program.config,
        model=model,
        clock_hz=clock_hz,
        baud=clock_hz // link.LEAST_DIVISOR,
        baked=baked,
        bitstream=None,
        opening=opening,
        **memory,
    )
