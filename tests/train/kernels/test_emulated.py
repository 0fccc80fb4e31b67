"""The tests of the kernels where neither a GPU nor Triton is: in a process of its own, since a
module is imported with one Triton.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lbq_hw.train.kernels.recurrence_jit import triton

HERE = Path(__file__).parent
OPTIONS = ("-rs", "-p", "emulate", "-p", "no:cacheprovider", "-p", "no:xdist")


@pytest.mark.skipif(triton is not None, reason="Triton is installed: the tests run with it")
@pytest.mark.parametrize("name", ["recurrence", "continued", "normed", "fuse"])
def test_kernels_pass_their_tests_in_an_emulation_of_triton(name: str) -> None:
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, str(HERE / f"test_{name}.py")],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Triton)" not in done.stdout  # that no test was skipped for want of Triton
