# amaranth: UnusedElaboratable=no
"""The driver in C, compiled, on the core in Verilator: logits equal those of the golden model."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from rtl.cores import run, simulated, write
from simulators import digits, needs_verilator

from lbq_hw import boards, file, golden, sizing, zoo
from lbq_hw.compiler import smallest_for
from lbq_hw.datasets.fitting import load_dataset, noise

pytestmark = needs_verilator
IMAGES = 4


@pytest.fixture(scope="module")
def on_axi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("axi")
    network = digits()
    design = write(network, smallest_for(network), "axi4lite", folder)
    return simulated(design, folder)


@pytest.mark.parametrize("how", ["bus", "load", "stream"])
@pytest.mark.parametrize("stalls", [0, 30])
def test_digits(on_axi: Path, how: str, stalls: int) -> None:
    raw = load_dataset(digits(), None, None).images[:IMAGES]
    wanted = golden.run(digits(), raw).logits
    assert np.array_equal(run(on_axi, how, raw, stalls=stalls), wanted)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("how", ["bus", "stream"])
def test_a_hundred_images_of_mnist(tmp_path: Path, how: str) -> None:
    network = file.load(zoo.find("mnist"))
    root = Path(os.environ.get("LBQ_DATA", "")) / "mnist"
    if "LBQ_DATA" not in os.environ or not root.is_dir():
        pytest.skip("LBQ_DATA names no folder that holds mnist")
    design = write(network, smallest_for(network), "axi4lite", tmp_path)
    raw = load_dataset(network, None, str(root)).images[:100]
    wanted = golden.run(network, raw).logits
    assert np.array_equal(run(simulated(design, tmp_path), how, raw, stalls=20), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["bus", "stream"])
def test_external_memory_of_random_latency(tmp_path: Path, how: str) -> None:
    """The network of a board with SDRAM, its tape in a memory that takes up to 40 cycles a word."""
    network = file.load(zoo.find("cifar10-small"))
    raw = noise(network, 1)
    sized = sizing.size(network, boards.find("tang-nano-20k"), images=raw)
    design = write(network, sized.config, "plain", tmp_path)
    program = simulated(design, tmp_path)
    wanted = golden.run(network, raw).logits
    got = run(program, how, raw, stalls=20, tape=tmp_path / "tape.bin")
    assert np.array_equal(got, wanted)
