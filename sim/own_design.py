"""A core of ``lbq rtl`` under cocotb, driven by bus masters of third-party packages."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lbq_hw import golden
from lbq_hw.isa import bus, regions
from lbq_hw.isa.regions import Region
from lbq_hw.network import Network
from lbq_hw.rtl.design import NAME, Design
from lbq_hw.sim.benches import own_design
from lbq_hw.sim.runner import Run, compile_design, simulate


def pixels(design: Design, raw: NDArray[np.uint8]) -> list[int]:
    """One raw input as pixels, each as one number."""
    layout, source = design.program.pixels, design.program.input
    levels = np.minimum(np.moveaxis(raw, -3, -1) >> source.shift, source.capacity)
    rows = levels.reshape(-1, layout.channels).tolist()
    return [sum(level << layout.bits * c for c, level in enumerate(pixel)) for pixel in rows]


def task(design: Design, network: Network, raw: NDArray[np.uint8]) -> dict[str, object]:
    """The parameters of the testbench."""
    config = design.program.config
    each = [pixels(design, one) for one in raw]
    return {
        "addresses": {name: bus.register_address(config, name) for name in bus.REGISTERS},
        "words": [design.program.pixel_words(one).tolist() for one in raw],
        "pixels": each,
        "logits": golden.run(network, raw).logits.tolist(),
        "logits_at": [
            bus.address(config, regions.address(config, Region.LOGITS, entry))
            for entry in design.logits
        ],
    }


def run(
    design: Design,
    network: Network,
    raw: NDArray[np.uint8],
    *,
    simulator: str = "icarus",
    limit: float,
    cache: Path,
) -> Run:
    """Run raw inputs through the bus, and through the stream without a host."""
    made = compile_design(design.verilog(), top=NAME, simulator=simulator, cache=cache)
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "task.json"
        told.write_text(json.dumps(task(design, network, raw)), encoding="utf-8")
        variables = {own_design.VARIABLE: str(told)}
        return simulate(made, own_design.__name__, variables=variables, limit=limit)
