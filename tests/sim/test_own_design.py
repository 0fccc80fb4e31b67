# amaranth: UnusedElaboratable=no
"""The core behind AXI4-Lite, Wishbone and AXI-Stream, driven by cocotbext-axi and -wishbone."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lbq_hw import file, zoo
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.datasets.fitting import load_dataset
from lbq_hw.network import Network
from lbq_hw.rtl.design import Design
from lbq_hw.sim import own_design
from lbq_hw.sim.drawn.networks import random_images, random_network
from lbq_hw.sim.runner import LIMIT, missing

CACHE = Path(__file__).parents[2] / "build" / "cocotb"
TESTS = ("through_the_bus", "through_the_stream")
pytestmark = pytest.mark.skipif(
    missing("icarus") is not None, reason=missing("icarus") or "icarus runs"
)


SMALL = {"axi4lite": 60, "wishbone": 25}
"""Seeds of random networks of a few hundred cycles: one with a border and patches, one without."""
FASTEST = "verilator" if missing("verilator") is None else "icarus"


def check(
    network: Network,
    bus: str,
    lanes: int,
    raw: NDArray[np.uint8],
    limit: float,
    simulator: str = "icarus",
) -> None:
    config = smallest_for(network, lanes=lanes)
    design = Design(program=compile_network(network, config), bus=bus)
    run = own_design.run(design, network, raw, simulator=simulator, limit=limit, cache=CACHE)
    assert run.failures == {}
    assert set(run.tests) == set(TESTS)


@pytest.mark.parametrize("bus", SMALL)
def test_a_small_network_through_a_bus_and_a_stream(bus: str) -> None:
    network = random_network(SMALL[bus])
    check(network, bus, 4, random_images(network, 2, 1), LIMIT)


@pytest.mark.slow
@pytest.mark.parametrize("bus", SMALL)
def test_a_digit_through_a_bus_and_a_stream(bus: str) -> None:
    network = file.load(zoo.find("digits"))
    check(network, bus, 16, load_dataset(network, None, None).images[:1], 10 * LIMIT)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("bus", SMALL)
def test_a_hundred_images_of_mnist(bus: str) -> None:
    network = file.load(zoo.find("mnist"))
    root = Path(os.environ.get("LBQ_DATA", "")) / "mnist"
    if "LBQ_DATA" not in os.environ or not root.is_dir():
        pytest.skip("LBQ_DATA names no folder that holds mnist")
    raw = load_dataset(network, None, str(root)).images[:100]
    check(network, bus, 16, raw, 100 * LIMIT, FASTEST)
