"""The most work that a program can have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbq_hw.compiler import Program
from lbq_hw.network import INPUT


def full_levels(program: Program) -> dict[str, NDArray[np.uint8]]:
    """Levels of every layer with all bits set, which no network emits: the most work there is."""
    return {
        name: np.full((tensor.frames, *tensor.shape), (1 << tensor.planes) - 1, np.uint8)
        for name, tensor in program.tensors.items()
        if name != INPUT
    }
