"""Executes a compiled program in numpy as the core does, event by event: tests the compiler.

It uses only the bytes of the program's tape and the plane words. Lanes accumulate in the order of
the events. If a lane or a partial sum overflows its width, `OverflowError` is raised; membranes
wrap at their width, as in the core. All memories start with noise, so a program must not read
anything that it has not written. Segments with rising exponents are refused, as in the core:
`ValueError`; so is a wrong tape: `TapeError`.

An item of a tape is written as early as the tape allows. So if it overwrites data that an earlier
pass still reads and does not wait for that pass, the pass computes wrong results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbq_hw.compiler.program import Program
from lbq_hw.interpreter.machine import Machine, Work
from lbq_hw.interpreter.units import Params
from lbq_hw.isa.contents import Contents, replay
from lbq_hw.isa.tape import TapeError
from lbq_hw.network import INPUT
from lbq_hw.numeric import Integers

__all__ = ["Execution", "Work", "run"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Execution:
    """One image: `logits` of the classes; `levels` by layer, ``(T, C, H, W)``; `work` by layer."""

    logits: Integers
    levels: dict[str, NDArray[np.uint8]]
    work: tuple[Work, ...]


def run(program: Program, raw: NDArray[np.uint8], *, seed: int = 0) -> Execution:
    """Execute one raw image ``(C, H, W)``, or its frames ``(T, C, H, W)``."""
    random = np.random.default_rng(seed)
    machine = Machine(program.config, random)
    source = program.tensors[INPUT]
    bits = program.input_bits(raw)
    machine.planes[source.base : source.end] = bits
    machine.flags[source.base : source.end] = bits.any(axis=1)
    levels: dict[str, NDArray[np.uint8]] = {}
    work: dict[int, Work] = {}
    for number, part in _passes(program, machine, random):
        work[number] = work[number] + part if number in work else part
        if part.name in program.tensors:  # whole once its last pass is done
            tensor = program.tensors[part.name]
            levels[part.name] = tensor.unpack(machine.planes[tensor.base : tensor.end])
    return Execution(
        logits=program.logits(machine.logits), levels=levels, work=tuple(work.values())
    )


def _passes(
    program: Program, machine: Machine, random: np.random.Generator
) -> Iterator[tuple[int, Work]]:
    """Execute the passes of a tape; returns the layer and the work of each."""
    contents = Contents(program.config, random)
    count = 0
    for count, records in enumerate(replay(program.tape, contents), 1):
        if count > len(program.passes):
            raise TapeError(f"the tape has more than the {len(program.passes)} passes of its plan")
        number = program.passes[count - 1].layer
        name, params = program.info[number].name, Params(contents.params())
        yield number, machine.layer(name, records, contents.weights(), params)
    if count < len(program.passes):
        raise TapeError(f"the tape has {count} passes, not the {len(program.passes)} of its plan")
