"""The page on the library: its blocks are one program, which runs and does what the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from simulators import needs_verilator
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import lbq_hw
from lbq_hw import train

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text("utf-8")
ON_A_BOARD = "## On a board"


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the blocks define, but for those that need a board."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        names["folder"] = tmp_path_factory.mktemp("library")
        patch.chdir(names["folder"])
        patch.syspath_prepend(names["folder"])
        for own in ("train", "sim", "boards"):
            (names["folder"] / f"{own}.py").write_text("raise ImportError('not ours')\n", "utf-8")
        for block in blocks(PAGE.partition(ON_A_BOARD)[0]):
            exec(block, names)
    return names


def test_the_model_of_the_page_learns_and_is_exported_with_its_bits(
    program: dict[str, Any],
) -> None:
    assert program["network"].weight_bits == 4
    assert program["network"].meta["dataset"] == "digits"
    assert program["accuracy"] > 0.9


def test_the_model_of_a_loop_of_ones_own_is_exported_with_its_bits(program: dict[str, Any]) -> None:
    own = lbq_hw.load(program["folder"] / "own.lbq")
    assert (own.name, own.weight_bits, own.timesteps) == ("own", 4, 2)


def test_the_inputs_of_a_spec_with_mean_and_std_are_those_of_the_page(
    program: dict[str, Any],
) -> None:
    spec = train.InputSpec(
        shape=(1, 8, 8), static=True, bits=5, full_scale=16, mean=(0.5,), std=(0.25,)
    )
    assert "`(q / full_scale - mean) / std`" in PAGE
    found = spec.normalize(torch.full((1, 1, 8, 8), 12, dtype=torch.uint8))
    assert torch.equal(found, torch.full((1, 1, 8, 8), (12 / 16 - 0.5) / 0.25))
    two = train.InputSpec(
        shape=(2, 8, 8), static=True, bits=5, full_scale=16, mean=(0.5, 0.5), std=(0.25, 0.5)
    )
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), train.LBQ(), torch.nn.Conv2d(4, 2, 6))
    with pytest.raises(ValueError, match="one input scale for all channels"):
        program["prepare"](model, two, weight_bits=4)


def test_the_golden_model_and_the_counts_are_those_of_the_network(program: dict[str, Any]) -> None:
    result, test = program["result"], program["test"]
    assert program["accuracy"] == np.mean(result.classes == test.labels)
    assert program["first_layer"].shape == (2, len(test.images), 8, 8, 8)
    assert program["counts"].images == len(test.images)
    assert 0 < program["counts"].work.bit_sparse < program["counts"].work.unary


def test_the_core_and_the_build_are_for_the_board(program: dict[str, Any]) -> None:
    assert program["sized"].board == "icebreaker"
    steps = [outcome.step for outcome in program["job"].outcomes]
    assert steps == ["load", "fit", "compile", "check", "rtl"]
    assert (program["folder"] / "build" / "tiny-icebreaker" / "top.v").is_file()


@pytest.mark.slow
@needs_verilator
def test_the_device_predicts_on_a_simulated_board_as_golden_does(
    program: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(program["folder"])
    names = dict(program)
    (block,) = blocks(PAGE.partition(ON_A_BOARD)[2])
    exec(block, names)
    assert names["classes"].tolist() == program["result"].classes[:3].tolist()
    assert np.array_equal(names["logits"], program["result"].logits[0])


@pytest.mark.parametrize("package", [lbq_hw, train])
def test_the_names_of_the_page_are_those_that_the_package_offers(package: Any) -> None:
    (row,) = re.findall(rf"^\| `{package.__name__}` \| (.*?) \|", PAGE, re.M)
    assert sorted(re.findall(r"`(\w+)`", row)) == sorted(package.__all__)
    for name in package.__all__:
        assert name in dir(package)
        assert getattr(package, name).__name__ == name
    with pytest.raises(
        AttributeError, match=rf"^module '{package.__name__}' has no attribute 'x'$"
    ):
        _ = package.x


def test_the_names_of_lbq_hw_need_neither_torch_nor_amaranth() -> None:
    heavy = "{'torch', 'amaranth', 'lbq_hw.train'}"
    code = f"import sys\nfrom lbq_hw import *\nprint(*{heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_train_is_imported_without_torch() -> None:
    code = "import sys, lbq_hw.train\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_training_leaves_metrics_checkpoints_and_a_tensorboard_file(
    program: dict[str, Any],
) -> None:
    run = program["folder"] / "runs" / "tiny"
    assert (run / "last.json").is_file()
    written = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in written] == [*range(1, 9)]
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == [*range(1, 9)]
    assert [*program["lines"][0]][-1] == "small_weights"


def test_the_same_call_resumes_a_run_that_is_done(
    program: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(program["folder"])
    again = program["fit"](
        *(program[name] for name in ("net", "spec", "train_loader", "test_loader", "recipe")),
        out="runs/tiny",
        resume=True,
    )
    left, right = again.model.state_dict(), program["model"].state_dict()
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_bits_are_those_of_the_layer(program: dict[str, Any]) -> None:
    bits = {path: m.bits for path, m in program["narrow"].named_modules() if hasattr(m, "bits")}
    assert bits == {"stem.0": 4, "conv.0": 2, "readout": 8}


def test_the_ann_of_the_page_is_converted_and_tuned(program: dict[str, Any]) -> None:
    assert program["trained"].metrics["test_accuracy"] > 80
    assert program["tuned"].metrics["test_accuracy"] > 80
    names = [n for n, m in program["converted"].named_modules() if isinstance(m, train.LBQ)]
    assert names == ["2"]


def test_the_states_of_100_single_steps_are_those_of_the_page(program: dict[str, Any]) -> None:
    assert len(program["steps"]) == 100
    assert torch.cat(program["steps"]).unique().numel() > 2
