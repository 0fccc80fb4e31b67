"""The wheel in a fresh environment without PyTorch, used from a folder of somebody's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"
PACKAGES = ("lbq_hw", "train", "sim", "boards")


def call(words: list[str | Path], folder: Path, code: int = 0) -> tuple[str, str]:
    """What a process prints, which must end with this code; it does not see our own tree."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, for setuptools leaves its products beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder, source]
    call(pip, folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.slow
def test_the_wheel_has_one_package_and_all_of_its_parts(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in names} == {"lbq_hw"}
    for part in ("train/neurons/kinds.py", "train/configs/digits.toml", "sim/board.cpp"):
        assert f"lbq_hw/{part}" in names
    assert "lbq_hw/boards/icebreaker.py" in names
    assert "lbq_hw/report/templates/style.css" in names
    assert "lbq_hw/report/templates/sections/core.html" in names


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and the parts of [hw] that sizing uses."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    pip = [programs / "python", "-m", "pip", "install", "-q", "-c", CONSTRAINTS]
    call([*pip, wheel, "amaranth", "amaranth-boards"], folder)
    return programs


@pytest.mark.slow
def test_the_installed_command_works_from_any_folder(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    (tmp_path / "sim.py").write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    (tmp_path / "boards.py").write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    lbq = installed / "lbq"
    found, _ = call([lbq, "build", "--list-boards", "--json"], tmp_path)
    assert "icebreaker" in [board["name"] for board in json.loads(found)]
    found, _ = call([lbq, "evaluate", "--json"], tmp_path)
    shipped = (ROOT / "lbq_hw" / "zoo" / "digits.json").read_text(encoding="utf-8")
    assert json.loads(found) == json.loads(shipped)
    build: list[str | Path] = [lbq, "build", "--board", "icebreaker", "--model", "mnist-4bit"]
    found, _ = call([*build, "--until", "compile", "--json"], tmp_path)
    assert [step["step"] for step in json.loads(found)["steps"]] == ["load", "fit", "compile"]
    assert (tmp_path / "build" / "icebreaker-mnist-4bit" / "program.txt").is_file()
    sentence = "error: PyTorch is not installed: pip install 'lbq-hw[train]'\n"
    assert call([lbq, "train", "--config", "digits"], tmp_path, code=2) == ("", sentence)
    python = installed / "python"
    assert call([python, "-m", "lbq_hw.train"], tmp_path, code=2) == ("", sentence)
