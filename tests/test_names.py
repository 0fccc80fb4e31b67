"""The three folders beside lbq_hw are parts of it: a module has one name, and a class is one."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def says(*words: str) -> str:
    """What Python prints in the repository's folder."""
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("name", ["train", "sim", "boards"])
def test_a_folder_is_a_part_of_lbq_hw(name: str) -> None:
    part = importlib.import_module(f"lbq_hw.{name}")
    assert part.__file__ is not None
    assert Path(part.__file__).resolve().parent == ROOT / name


def test_there_is_one_class_of_a_neuron_by_whichever_name_it_is_found() -> None:
    code = "import train, lbq_hw.train, lbq_hw.train.neurons.kinds as kinds\n"
    code += "print(train.LBQ is lbq_hw.train.LBQ is kinds.LBQ)"
    assert says("-c", code) == "True\n"


@pytest.mark.parametrize(
    "name", ["train", "train.export", "train.nir", "sim", "sim.board", "boards"]
)
def test_a_command_of_the_repository_has_a_short_name_too(name: str) -> None:
    assert says("-m", name, "--help") == says("-m", f"lbq_hw.{name}", "--help")
