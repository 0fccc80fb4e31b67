"""Which inputs of a dataset serve to compare a network on, and which to calibrate it."""

from __future__ import annotations

import numpy as np
import pytest

from lbq_hw.train.nir.inputs import places


@pytest.mark.parametrize(
    ("calibrate", "timesteps", "count"),
    [(None, 6, 256), (None, 300, 13), (None, 10_000, 1), (40, 300, 40), (0, 6, 0)],
)
def test_inputs_to_calibrate_on_are_as_many_as_told_and_else_as_memory_holds(
    calibrate: int | None, timesteps: int, count: int
) -> None:
    compared, calibrated = places(1437, calibrate, timesteps=timesteps)
    assert (len(compared), len(calibrated)) == (32, count)
    assert not set(compared) & set(calibrated)
    assert len(set(calibrated)) == count


def test_both_are_spread_over_the_split() -> None:
    compared, calibrated = places(1000, 100, timesteps=1)
    for found in (compared, calibrated):
        assert found[0] <= 1
        assert found[-1] >= 998
        assert np.all(np.diff(found) > 0)
        assert np.diff(found).max() <= 1000 / len(found) + 2


def test_few_inputs_are_compared_first_and_serve_for_both_where_there_are_no_others() -> None:
    compared, calibrated = places(40, None, timesteps=6)
    assert len(compared) == 32
    assert sorted([*compared, *calibrated]) == list(range(40))
    compared, calibrated = places(5, None, timesteps=6)
    assert compared.tolist() == calibrated.tolist() == [0, 1, 2, 3, 4]
