"""The levels of a frame together with the levels of earlier frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROWS = 8
"""Frames that a network sees at a time."""
GAP = 2
"""Distance in frames between two rows."""


def remembered(levels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Levels (recordings, frames, bands) as rows of (recordings, frames, `ROWS`, bands).

    Row k of a frame holds the levels of `GAP` * k frames ago: 0 before the recording began.
    """
    before = np.pad(levels, ((0, 0), (GAP * (ROWS - 1), 0), (0, 0)))
    count = levels.shape[1]
    starts = [GAP * (ROWS - 1 - row) for row in range(ROWS)]
    return np.stack([before[:, start : start + count] for start in starts], axis=2)
