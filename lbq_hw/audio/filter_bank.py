"""A bank of resonators, and the energy of each as a level per frame.

All values are integers, and multiplications have constants of 12 bits, so that a block of additions
and shifts computes the same (`lbq_hw.core.audio.filter_bank`). For each sample x, with d the
difference to the previous sample, each band computes

    y = d - d'' + floor((c1 * y' - c2 * y'') / 2**FRACTION)

where a prime means one sample earlier: a resonator with a zero at 0 Hz and at half the rate. Over
the `FRAME` samples of a frame, |y| is summed; the sum is divided by the gain of the band, a power
of two, and becomes a number of half octaves, 3 dB each:

    loudness = 2 * m + (the bit below the highest), m the place of the highest bit; 0 for a sum of 0

Speakers are loud or quiet, near or far, so levels are relative to a ceiling. The ceiling rises at
once to the loudest band, and falls by a half octave in `FALL` frames, but not below `FLOOR`, so
that silence stays silent. A band has level `LEVELS` at the ceiling and one level less per half
octave below it, down to 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RATE = 8000
"""Samples per second."""
SAMPLE_BITS = 16
FRAME = 64
"""Samples per frame: 8 ms."""
FRACTION = 10
"""Fraction bits of `c1` and `c2`."""
LEVELS = 7
FALL = 4
"""Frames in which the ceiling falls by one."""
FLOOR = 22
"""The lowest ceiling."""
_COUNT, _LOWEST_HZ, _HIGHEST_HZ = 16, 200, 3600


@dataclass(frozen=True, kw_only=True)
class Band:
    """A resonator: its centre in Hz, for information, its coefficients, and log2 of its gain."""

    centre: float
    c1: int
    c2: int
    gain: int

    @classmethod
    def at(cls, centre: float, width: float) -> Band:
        """The resonator with a peak of width `width` at `centre`, both in Hz."""
        radius = math.exp(-math.pi * width / RATE)
        angle = 2 * math.pi * centre / RATE
        c1 = round(2 * radius * math.cos(angle) * 2**FRACTION)
        c2 = round(radius * radius * 2**FRACTION)
        back = complex(math.cos(angle), -math.sin(angle))
        peak = abs((1 - back**2) / (1 - c1 / 2**FRACTION * back + c2 / 2**FRACTION * back**2))
        return cls(centre=centre, c1=c1, c2=c2, gain=round(math.log2(peak)))

    @property
    def largest(self) -> int:
        """A bound of |y| for any samples.

        |d - d''| is at most twice the range of a sample, and each floor takes away less than one.
        The bound is both, times the sum of the absolute impulse response.
        """
        before, earlier, total = 0.0, 0.0, 0.0
        for step in range(RATE):
            impulse = float(step == 0) + (self.c1 * before - self.c2 * earlier) / 2**FRACTION
            before, earlier = impulse, before
            total += abs(impulse)
        return math.ceil(total * (2 ** (SAMPLE_BITS + 1) + 1))


def _bands() -> tuple[Band, ...]:
    """Bands of equal width on the mel scale, each as wide as it is far from its neighbours."""

    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    def hertz(at: float) -> float:
        return 700 * (10 ** (at / 2595) - 1)

    low, high = mel(_LOWEST_HZ), mel(_HIGHEST_HZ)
    edges = [hertz(low + (high - low) * i / (_COUNT + 1)) for i in range(_COUNT + 2)]
    return tuple(Band.at(edges[i], (edges[i + 1] - edges[i - 1]) / 2) for i in range(1, _COUNT + 1))


BANDS = _bands()


class FilterBank:
    """Turns the samples of several recordings in parallel into levels, and keeps their state.

    Parameters
    ----------
    recordings : int
    """

    def __init__(self, recordings: int = 1) -> None:
        self._c1 = np.array([band.c1 for band in BANDS])
        self._c2 = np.array([band.c2 for band in BANDS])
        self._gain = np.array([band.gain for band in BANDS])
        shape = (recordings, len(BANDS))
        self._before, self._earlier = np.zeros((2, *shape), np.int64)
        self._sample, self._rise, self._rise_before = np.zeros((3, recordings), np.int64)
        self._ceiling = np.full(recordings, FLOOR * FALL)  # in units of 1 / FALL half octaves

    def levels(self, samples: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Levels (recordings, frames, bands) of samples (recordings, frames * `FRAME`)."""
        recordings, count = samples.shape
        if count % FRAME:
            raise ValueError(f"samples must fill frames of {FRAME}, not {count}")
        frames = samples.astype(np.int64).reshape(recordings, -1, FRAME)
        shape = (recordings, frames.shape[1], len(BANDS))
        levels = np.empty(shape, np.uint8)
        for number in range(frames.shape[1]):
            levels[:, number] = self.below_ceiling(self.energies(frames[:, number]))
        return levels

    def energies(self, frame: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of |y| of each band over the samples (recordings, `FRAME`) of a frame."""
        total = np.zeros_like(self._before)
        for sample in frame.T:
            rise = sample - self._sample
            back = (self._c1 * self._before - self._c2 * self._earlier) >> FRACTION
            y = (rise - self._rise_before)[:, None] + back
            self._sample, self._rise, self._rise_before = sample, rise, self._rise
            self._before, self._earlier = y, self._before
            total += np.abs(y)
        return total

    def below_ceiling(self, energies: NDArray[np.int64]) -> NDArray[np.int64]:
        """The levels of a frame, once the ceiling has followed its loudest band."""
        heard = loudness(energies >> self._gain)
        loudest = heard.max(1) * FALL
        self._ceiling = np.maximum(np.maximum(self._ceiling - 1, loudest), FLOOR * FALL)
        return np.clip(LEVELS - (self._ceiling // FALL)[:, None] + heard, 0, LEVELS)


def loudness(energy: NDArray[np.int64]) -> NDArray[np.int64]:
    """Energies in half octaves."""
    highest = np.frexp(energy.astype(np.float64))[1].astype(np.int64) - 1  # exact below 2**53
    below = energy >> np.maximum(highest - 1, 0) & 1
    return np.where(energy > 0, 2 * highest + np.where(highest > 0, below, 0), 0)
