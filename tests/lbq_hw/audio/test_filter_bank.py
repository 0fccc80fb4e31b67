"""The filter bank: what its numbers mean, and that they never leave their widths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lbq_hw.audio import BANDS, FRAME, GAP, LEVELS, RATE, ROWS, Band, FilterBank, remembered
from lbq_hw.audio.filter_bank import FLOOR, FRACTION, loudness


def tone(hertz: float, *, frames: int = 8, height: int = 8000) -> np.ndarray:
    times = np.arange(frames * FRAME) / RATE
    return np.round(height * np.sin(2 * np.pi * hertz * times)).astype(np.int16)[None]


def test_silence_has_no_levels() -> None:
    assert not FilterBank().levels(np.zeros((1, 4 * FRAME), np.int16)).any()


@pytest.mark.parametrize("number", range(len(BANDS)))
def test_a_tone_is_loudest_in_its_band(number: int) -> None:
    energies = FilterBank()
    samples = tone(BANDS[number].centre)
    for start in range(0, samples.shape[1], FRAME):
        heard = energies.energies(samples[:, start : start + FRAME].astype(np.int64))[0]
    gains = [band.gain for band in BANDS]
    assert int((heard >> gains).argmax()) == number
    levels = FilterBank().levels(samples)[0, -1]
    assert levels[number] == LEVELS
    assert levels[(number + 8) % len(BANDS)] < LEVELS


def test_a_quiet_voice_has_the_levels_of_a_loud_one() -> None:
    """Up to a level, since half octaves are whole numbers."""
    loud, quiet = (FilterBank().levels(tone(600, height=height)) for height in (16000, 2000))
    assert np.abs(loud.astype(int) - quiet)[:, 2:].max() <= 1
    assert quiet.max() == LEVELS


def test_what_is_below_the_floor_counts_from_there() -> None:
    faint = FilterBank().levels(tone(600, height=12))[0, -1]
    assert 0 < faint.max() < LEVELS


def test_state_is_kept_from_call_to_call() -> None:
    samples = np.random.default_rng(0).integers(-5000, 5000, (3, 6 * FRAME), np.int16)
    whole = FilterBank(3).levels(samples)
    bank = FilterBank(3)
    parts = [bank.levels(part) for part in np.split(samples, [FRAME, 4 * FRAME], axis=1)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)


def test_recordings_do_not_hear_each_other() -> None:
    samples = np.random.default_rng(1).integers(-5000, 5000, (2, 4 * FRAME), np.int16)
    whole = FilterBank(2).levels(samples)
    for row, levels in zip(samples, whole, strict=True):
        np.testing.assert_array_equal(FilterBank().levels(row[None])[0], levels)


def test_samples_must_fill_frames() -> None:
    with pytest.raises(ValueError, match="samples must fill frames of 64, not 65"):
        FilterBank().levels(np.zeros((1, 65), np.int16))


def test_loudness_counts_half_octaves() -> None:
    energies = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 2**30 - 1, 2**30])
    assert loudness(energies).tolist() == [0, 0, 2, 3, 4, 4, 5, 5, 6, 59, 60]


@pytest.mark.parametrize("band", BANDS)
def test_no_samples_leave_the_widths(band: Band) -> None:
    """The worst samples follow the sign of the impulse response: near the bound, never above it."""
    response, before, earlier = [], 0.0, 0.0
    for step in range(2000):
        value = float(step == 0) + (band.c1 * before - band.c2 * earlier) / 2**FRACTION
        response.append(value)
        before, earlier = value, before
    assert abs(response[-1]) < 1e-6
    drive = np.where(np.array(response[::-1]) > 0, 2**17, -(2**17))
    y = earlier_y = 0
    for value in drive.tolist():
        y, earlier_y = value + ((band.c1 * y - band.c2 * earlier_y) >> FRACTION), y
    assert 0.95 * band.largest < abs(y) <= band.largest


def test_bands_are_stable_and_their_coefficients_fit() -> None:
    for band in BANDS:
        assert 0 < band.c2 < 2**FRACTION
        assert abs(band.c1) < 2 ** (FRACTION + 1)
        assert math.sqrt(band.c2 / 2**FRACTION) < 1
    assert FLOOR > LEVELS


def test_rows_are_older_frames() -> None:
    levels = np.arange(40, dtype=np.uint8).reshape(1, 20, 2)
    seen = remembered(levels)
    assert seen.shape == (1, 20, ROWS, 2)
    for frame in range(20):
        for row in range(ROWS):
            then = frame - GAP * row
            expected = levels[0, then] if then >= 0 else np.zeros(2)
            np.testing.assert_array_equal(seen[0, frame, row], expected)
