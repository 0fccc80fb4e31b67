"""A bug in a copy of the core: the sweep finds it, makes the network small, and writes a test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from simulators import needs_verilator

ROOT = Path(__file__).parents[3]
BUG = (
    "core/neurons/rules.py",
    "unit.fire & (silent < floor)",
    "unit.fire & ~unit.to_zero & (silent < floor)",
)
"""A membrane that resets to zero falls below its floor where it does not fire."""


def called(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the copy in `folder`."""
    env = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@needs_verilator
@pytest.mark.slow
def test_a_planted_bug_is_found_and_its_network_has_at_most_three_layers(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.lbq", "*.jsonl")
    shutil.copytree(ROOT / "lbq_hw", tmp_path / "lbq_hw", ignore=ignored)
    name, old, new = BUG
    text = (tmp_path / "lbq_hw" / name).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "lbq_hw" / name).write_text(text.replace(old, new), encoding="utf-8")

    sweep = ["lbq_hw.sim.sweep", "--networks", "30", "--shapes", "1", "--workers", "1", "--json"]
    done = called(tmp_path, *sweep, "--out", "results.jsonl")
    assert done.returncode == 1, done.stderr
    facts = json.loads(done.stdout)
    assert facts["differences"] == 1
    assert facts["case_layers"] <= 3

    test = f"{facts['case']}/test_case.py"
    options = ["-p", "no:cacheprovider", "-q"]
    assert called(tmp_path, "pytest", *options, test).returncode == 1
    (tmp_path / "lbq_hw" / name).write_text(text, encoding="utf-8")
    mended = called(tmp_path, "pytest", *options, test)
    assert mended.returncode == 0, mended.stdout
