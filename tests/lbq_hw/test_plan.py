"""The command lbq plan: the core for a board, and its cycles by layer as the RTL counts them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from digit_pictures import write

from lbq_hw import boards, file, interpreter, sizing, units, zoo
from lbq_hw.chips.timing import reader_timing
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.config import CoreConfig
from lbq_hw.cycles import predict
from lbq_hw.datasets import load
from lbq_hw.isa.regions import COUNTERS
from lbq_hw.plan import main

NETWORK = file.load(zoo.find("digits"))
SIM = ["--board", "sim", "--lanes", "8"]


def planned(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def written(folder: Path, config: CoreConfig) -> list[str]:
    """The option that names a core's file."""
    path = folder / "core.json"
    path.write_text(config.to_json(), encoding="utf-8")
    return ["--core", str(path)]


def test_the_core_is_the_one_that_sizing_chooses(capsys: pytest.CaptureFixture[str]) -> None:
    facts = planned(["--board", "ulx3s-12f", "--lanes", "8", "--images", "1"], capsys)
    images = load("digits", split="test").images
    sized = sizing.size(NETWORK, boards.find("ulx3s-12f"), lanes=8, images=images[:1])
    assert sized.estimate is not None
    assert facts["clock_hz"] == sized.clock_hz
    assert facts["estimate"]["luts"] == sized.estimate.luts
    assert facts["estimate"]["block_rams"] == sized.estimate.block_rams


def test_cycles_are_those_of_the_model_on_a_given_core(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = smallest_for(NETWORK, lanes=8)
    images = load("digits", split="test").images[:2]
    np.save(tmp_path / "raw.npy", images)
    facts = planned([*written(tmp_path, config), "--raw", str(tmp_path / "raw.npy")], capsys)
    program = compile_network(NETWORK, config)
    found = [predict(program, raw, interpreter.run(program, raw).levels) for raw in images]
    each = [sum(layer.cycles for layer in image) for image in found]
    assert facts["images"] == 2
    assert facts["cycles"] == sum(each) / 2
    assert facts["slowest_cycles"] == max(each) != min(each)
    assert facts["utilisation"] == facts["acs_bit_sparse"] / (8 * facts["cycles"])
    assert {"name", *COUNTERS, "utilisation", "bounds", "limit"} < set(facts["layers"][0])
    assert (facts["core"], facts["estimate"], facts["tape_bytes"]) == (None, None, 0)


def test_a_board_s_memory_is_in_the_cycles(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--board", "ulx3s-85f", "--memory", "external", "--lanes", "8", "--images", "1"]
    facts = planned(options, capsys)
    assert [layer["name"] for layer in facts["budget"]] == [x["name"] for x in facts["layers"]]
    board = boards.find("ulx3s-85f")
    assert board.chip is not None
    sized = sizing.size(
        NETWORK, board, lanes=8, memory="external", images=load("digits", split="test").images
    )
    timing = reader_timing(board.chip, facts["clock_hz"])
    program = compile_network(NETWORK, sized.config, timing=timing)
    assert len(program.tape) == facts["tape_bytes"]


def test_data_of_one_s_own_is_not_called_images_of_images(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = load("digits", split="test").images[:4]
    np.savez(tmp_path / "mine.npz", images=images, labels=np.arange(4))
    pictures = ["--dataset", "images", "--data", str(write(tmp_path / "mine"))]
    arrays = ["--dataset", "npz", "--data", str(tmp_path / "mine.npz")]
    for data, called in ((pictures, "a folder of pictures"), (arrays, "a file of arrays")):
        assert main([*SIM, *data, "--images", "2"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert f"the mean of 2 images of {called}, the slowest " in text


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SIM, "--images", "2"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    facts = planned([*SIM, "--images", "2"], capsys)
    slowest = f"{facts['slowest_cycles']:,}"
    assert f"digits on 8 lanes, the mean of 2 images of digits, the slowest {slowest}" in text
    assert text.startswith("sim: P = 8, W = ")
    assert "logits" in text
    seen = units.three_digits(facts["images_per_second"])
    assert f"A host sees about {seen} images/s over the link, at 3,000,000 baud." in text
    assert "The core alone, at 48 MHz: " in text
    core = facts["cycles"] / facts["clock_hz"]
    assert facts["images_per_second"] == 1 / max(facts["link_seconds"], core)
    assert main([*SIM, "--images", "1"]) == 0
    assert "digits on 8 lanes, 1 image of digits" in capsys.readouterr().out


def test_a_clock_that_slows_the_line_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--board", "icebreaker", "--lanes", "8", "--images", "1", "--freq"]
    note = "The line is faster at 30 MHz, since its rate is the clock over an integer."
    for mhz, told in (("33", True), ("30", False)):
        assert main([*options, mhz]) == 0
        assert (note in " ".join(capsys.readouterr().out.split())) is told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lanes", "5"], "error: lanes must be a power of two up to 256, not 5\n"),
        ([*SIM, "--dataset", "mnist"], "error: the model takes images of shape (1, 8, 8), the "
         "dataset 'mnist' has (1, 28, 28)\n"),
        (["--board", "ice40-hx8k", "--memory", "external"], "error: iCE40-HX8K breakout has no "
         "external memory that a core can read\n"),
    ],
)  # fmt: skip
def test_the_command_refuses_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == message


def test_a_board_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--board", "ulx3s-86f"]) == 2
    assert capsys.readouterr().err.startswith("error: no board 'ulx3s-86f'")
