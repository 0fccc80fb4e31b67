"""The command sim: what it runs a network on. The simulation itself is a stand-in."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lbq_hw import datasets, file, zoo
from lbq_hw.datasets.fitting import draw, noise
from lbq_hw.sim import command


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The images of each call."""
    found: list[np.ndarray] = []

    def check(_network: Any, _program: Any, _core: Any, images: np.ndarray, **_: Any) -> Any:
        found.append(images)
        return SimpleNamespace(report=lambda: {"bit_exact": True, "on_time": True}, cycles=0)

    monkeypatch.setattr(command, "check", check)
    monkeypatch.setattr(command, "_start", lambda *_: nullcontext())
    return found


def test_a_network_runs_on_its_dataset_on_raw_images_or_on_noise(
    seen: list[np.ndarray], tmp_path: Path
) -> None:
    digits = file.load(zoo.find("digits"))
    file.save(replace(digits, meta={}), tmp_path / "net.lbq")
    np.save(tmp_path / "raw.npy", np.full((4, 8, 8), 7, np.uint8))
    assert command.main(["--json"]) == 0
    assert command.main(["--json", "--raw", str(tmp_path / "raw.npy"), "--images", "2"]) == 0
    assert command.main(["--json", "--model", str(tmp_path / "net.lbq")]) == 0
    whole = datasets.load("digits", split="test").images
    np.testing.assert_array_equal(seen[0], whole[draw(len(whole), 3)])
    np.testing.assert_array_equal(seen[1], np.full((2, 1, 8, 8), 7, np.uint8))
    np.testing.assert_array_equal(seen[2], noise(digits, 3))


@pytest.mark.usefixtures("seen")
def test_a_dataset_that_is_asked_for_and_not_there_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    none = tmp_path / "none.npz"
    assert command.main(["--dataset", "npz", "--data", str(none)]) == 2
    assert (
        capsys.readouterr().err == f"error: {none} is not a file: give the path of an .npz file\n"
    )
