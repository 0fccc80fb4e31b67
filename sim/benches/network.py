# amaranth: UnusedElaboratable=no
"""The whole core with a network of the user's own, against its golden tensors.

Not one of `BENCHES`: `sim.own_network` prepares the folder with all three.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cocotb

from lbq_hw import file
from lbq_hw.compiler import compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.core.accelerator import accelerator
from lbq_hw.sim import golden
from lbq_hw.sim.benches.accelerator import layer_by_layer
from lbq_hw.sim.benches.harness import Bench, Settings
from lbq_hw.sim.benches.port import Port

NETWORK, CONFIG, TENSORS = "net.lbq", "core.json", "golden.npz"
"""Files of the folder."""


@cocotb.test()
async def a_network_layer_by_layer(dut: Any) -> None:
    folder = Path(Settings.from_env().folder)
    config = CoreConfig.from_json((folder / CONFIG).read_text(encoding="utf-8"))
    bench = await Bench.start(dut, accelerator(config)(config))
    program = compile_network(file.load(folder / NETWORK), config)
    tensors = golden.read(folder / TENSORS)
    await layer_by_layer(bench, Port(dut), program, tensors, range(len(tensors.images)))
