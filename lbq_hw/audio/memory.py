"""The levels of a frame beside those of some frames before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROWS = 8
"""Frames that a network sees at a time."""
GAP = 2
"""Frames from one of them to the next."""


def remembered(levels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(recordings, frames, `ROWS`, bands) of levels (recordings, frames, bands).

    Row k of a frame holds the levels of `GAP` * k frames ago: 0 before the recording began.
    """
    before = np.pad(levels, ((0, 0), (GAP * (ROWS - 1), 0), (0, 0)))
    count = levels.shape[1]
    starts = [GAP * (ROWS - 1 - row) for row in range(ROWS)]
    return np.stack([before[:, start : start + count] for start in starts], axis=2)
