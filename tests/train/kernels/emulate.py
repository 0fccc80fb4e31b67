"""A plugin of pytest: the kernels are imported with the Triton of ``emulated``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch._dynamo.utils  # noqa: F401  looks for Triton, and shall not find the emulated one

HERE = str(Path(__file__).parent / "emulated")

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, HERE)
import lbq_hw.train.kernels.recurrence_jit  # noqa: E402, F401

sys.path.remove(HERE)
for name in ("triton", "triton.language"):
    del sys.modules[name]
