"""The table of accuracies: three rows on the same images, or why the board's is left out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lbq_hw import datasets, file, golden, units, zoo
from lbq_hw.compiler import CompileError, smallest_for
from lbq_hw.datasets.fitting import draw_from
from lbq_hw.network import Network
from lbq_hw.sim import on_board
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import accuracies

TOOLS = ("verilator", "g++", "make")
SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16)
SAID = (
    "simulating the board on {}; compiling a new core takes a minute (--board-images 0 skips "
    "this)\n"
)


class Constant(nn.Module):
    """Takes every image for a 3."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.eye(10)[3].expand(len(x), 10)


def digits() -> Network:
    return file.load(zoo.find("digits"))


def measure(network: Network, board_images: int | None, images: int = 30) -> dict[str, Any]:
    data = draw_from(datasets.load("digits", split="test"), images)
    return accuracies.measure(Constant(), SPEC, network, data, board_images=board_images)


def answering(change: int) -> Any:
    """A board whose first logit is off by `change`."""

    def logits(network: Network, images: np.ndarray) -> np.ndarray:
        found = golden.run(network, images).logits.copy()
        found[0, 0] += change
        return found

    return logits


@pytest.mark.parametrize(("asked", "count"), [(None, 20), (7, 7), (50, 30)])
def test_all_three_are_measured_on_the_first_images(
    asked: int | None,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(on_board, "logits", answering(0))
    network, data = digits(), draw_from(datasets.load("digits", split="test"), 30)
    found = measure(network, asked)
    assert capsys.readouterr().err == SAID.format(units.images(count))
    right = golden.predict(network, data.images) == data.labels
    threes = data.labels == 3
    assert (found["float"], found["integer"]) == (100 * threes.mean(), 100 * right.mean())
    assert found["simulated"] == {
        "images": count,
        "reason": None,
        "float": 100 * threes[:count].mean(),
        "integer": 100 * right[:count].mean(),
        "board": 100 * right[:count].mean(),
        "equal": True,
    }
    assert not accuracies.differs(found)


def test_a_board_with_other_logits_is_said_to_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(on_board, "logits", answering(1))
    found = measure(digits(), 5)
    assert found["simulated"]["equal"] is False
    assert accuracies.differs(found)
    accuracies.show(found)
    assert "simulated board: logits DIFFER from the integer network's" in capsys.readouterr().out


def test_without_images_for_it_the_board_has_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    found = measure(digits(), 0)
    assert found["simulated"] is None
    assert not accuracies.differs(found)
    accuracies.show(found)
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "┃ 30 of 359 test images (seed 0) ┃\n" in printed.out
    assert "simulated" not in printed.out


def left_out(network: Network, board_images: int | None, capsys: Any) -> str:
    """Why, as the table says it; the other two rows have their accuracies."""
    found = measure(network, board_images)
    simulated = found["simulated"]
    assert (simulated["board"], simulated["equal"]) == (None, None)
    assert not accuracies.differs(found)
    accuracies.show(found)
    shown = " ".join(capsys.readouterr().out.split())
    assert f"simulated board: left out ({simulated['reason']})" in shown
    assert f"│ integer network │ {found['integer']:.2f} %" in shown
    assert "│ simulated board │ - │" in shown
    return simulated["reason"]


def tools(folder: Path, *names: str) -> Path:
    """A folder with programs of these names."""
    folder.mkdir()
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


@pytest.mark.parametrize("tool", TOOLS)
def test_a_missing_tool_is_named(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    others = (other for other in TOOLS if other != tool)
    monkeypatch.setenv("PATH", str(tools(tmp_path / "tools", *others)))
    assert left_out(digits(), 3, capsys) == (
        "verilator is missing: sudo apt install verilator"
        if tool == "verilator"
        else f"{tool} is missing, with which verilator builds the core: sudo apt install {tool}"
    )


def test_missing_amaranth_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in list(sys.modules):
        if name.startswith(("amaranth", "lbq_hw.sim")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("lbq_hw.sim.on_board")
    monkeypatch.setitem(sys.modules, "amaranth", None)
    reason = left_out(digits(), 3, capsys)
    assert reason == "Amaranth is not installed: pip install 'lbq-hw[hw]'"


def test_a_network_that_no_core_holds_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    network = digits()

    def refuse(network: Network, **_: int) -> Any:
        raise CompileError(network.name, smallest_for(network), (), {})

    monkeypatch.setattr(on_board, "smallest_for", refuse)
    assert left_out(network, 3, capsys) == "no core without external memory holds the network"


def test_a_network_that_takes_minutes_is_simulated_when_told_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(accuracies, "_CYCLES", 100 * digits().parameters)
    reason = left_out(digits(), None, capsys)
    assert reason == "it would take minutes: give --board-images 1 to simulate it"
    monkeypatch.setattr(on_board, "logits", answering(0))
    assert measure(digits(), 1)["simulated"]["equal"] is True


def test_a_folder_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tools(tmp_path / "tools", *TOOLS)))
    (tmp_path / "build").touch()
    assert left_out(digits(), 2, capsys) == (
        "the simulation cannot be built in build/sim (Not a directory): make room in this folder, "
        "or call from one that can be written to"
    )
