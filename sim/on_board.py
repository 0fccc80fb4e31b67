"""Runs images on a simulated board with its host, for a network that has no package yet."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lbq_hw import boards, file, package
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.host import Device, SerialTransport
from lbq_hw.isa.link import LEAST_DIVISOR
from lbq_hw.network import Network
from lbq_hw.numeric import Integers
from lbq_hw.sim import board as simulation
from lbq_hw.sim.verilator import CACHE


def logits(network: Network, images: NDArray[np.uint8], *, cache: Path = CACHE) -> Integers:
    """The logits of raw images on the board ``sim``, (n, K).

    Its core is the smallest core that holds the network; the host uploads the program, as to any
    board. CompileError if no core can hold the network, SimulatorError or DeviceError if the core
    cannot be built or does not work. A core that was built before is reused from `cache`.
    """
    described = boards.find("sim")
    config = smallest_for(network)
    program = compile_network(network, config)
    with tempfile.TemporaryDirectory(prefix="lbq-board-") as folder:
        model = Path(folder) / "net.lbq"
        file.save(network, model)
        packed = package.write(
            Path(folder) / "package",
            board=described.name,
            config=config,
            model=model,
            clock_hz=described.target_hz,
            baud=described.baud,
            baked=False,
            bitstream=None,
        )
        built = simulation.build(packed, cache=cache)
    with (
        simulation.running(built, clock_hz=packed.clock_hz) as board,
        SerialTransport.open(board.name, baud=packed.baud) as line,
    ):
        line.set_rate(packed.clock_hz // LEAST_DIVISOR, clock_hz=packed.clock_hz)
        device = Device(line, program)
        device.load()
        return np.array([device.run(image) for image in images])
