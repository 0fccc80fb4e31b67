# amaranth: UnusedElaboratable=no
"""A network of the user's own on the whole core under cocotb: ``lbq regression --model``."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import file
from lbq_hw.compiler import smallest_for
from lbq_hw.core.accelerator import accelerator
from lbq_hw.network import Network
from lbq_hw.sim import golden
from lbq_hw.sim.benches.harness import Settings
from lbq_hw.sim.benches.network import CONFIG, NETWORK, TENSORS
from lbq_hw.sim.reports import Result
from lbq_hw.sim.runner import CACHE, LIMIT, compile_design, simulate
from lbq_hw.sim.verilog import convert

BENCH = "network"


def run_network(
    network: Network,
    images: NDArray[np.uint8],
    *,
    lanes: int,
    simulator: str = "icarus",
    spoil: bool = False,
    waves: Path | None = None,
    limit: float = LIMIT,
    cache: Path = CACHE,
) -> Result:
    """Load a network into the smallest core with `lanes` lanes, run images layer by layer, and
    compare every level and logit with golden.
    """
    began = time.perf_counter()
    config = smallest_for(network, lanes=lanes)
    if config.external:
        raise ValueError("a core with external memory must be simulated with python -m sim")
    text = convert(accelerator(config)(config), name=BENCH)
    design = compile_design(
        text, top=BENCH, simulator=simulator, waves=waves is not None, cache=cache
    )
    with tempfile.TemporaryDirectory(prefix="lbq-") as name:
        folder = Path(name)
        file.save(network, folder / NETWORK)
        (folder / CONFIG).write_text(config.to_json(), encoding="utf-8")
        golden.store(golden.make(network, images), folder / TENSORS)
        settings = Settings(folder=name, spoil=spoil)
        module: Any = f"lbq_hw.sim.benches.{BENCH}"
        run = simulate(design, module, variables=settings.to_env(), waves=waves, limit=limit)
    seconds = time.perf_counter() - began
    return Result(bench=BENCH, shape=0, simulator=simulator, run=run, seconds=seconds, waves=waves)
