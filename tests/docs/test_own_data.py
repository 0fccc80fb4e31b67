"""The page on data of one's own: its commands run as they are printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from simulators import needs_verilator

from lbq_hw import datasets, file, golden
from lbq_hw.__main__ import main as lbq
from lbq_hw.sim.board import main as board

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"


def commands() -> list[list[str]]:
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    return [shlex.split(line) for line in block.splitlines()]


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Digits as pictures, in a current folder whose user has programs of the same names."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "sim.py"):
        (tmp_path / name).write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    for split in ("train", "test"):
        digits = datasets.load("digits", split=split)
        seen = [0] * digits.classes
        for image, label in zip(digits.images, digits.labels, strict=True):
            folder = tmp_path / "pictures" / split / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image[0] * np.uint8(15)).save(folder / f"{seen[label]}.png")
            seen[label] += 1
    return tmp_path / "pictures"


@pytest.mark.slow
@needs_verilator
def test_the_way_from_pictures_to_predictions_runs_as_printed(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in commands():
        capsys.readouterr()
        if words[0] == "lbq":
            assert lbq(words[1:]) == 0, words
        else:
            assert words[:3] == ["python", "-m", "sim.board"]
            assert board(words[3:]) == 0
    shown = capsys.readouterr().out
    with Image.open(pictures / "test" / "7" / "0.png") as picture:
        raw = np.asarray(picture)[None, None]
    (wanted,) = golden.predict(file.load("mine.lbq"), raw).tolist()
    assert re.search(rf"classes +│ {wanted} ", shown)
    assert "all logits equal" in shown
