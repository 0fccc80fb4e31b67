"""Rounding, widths and levels against definitions in plain Python integers."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbq_hw import numeric


def test_rounding_takes_ties_to_even() -> None:
    values = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.4999, 2.5, 2.5001]
    assert numeric.to_integer(values).tolist() == [-2, -2, 0, 0, 2, 2, 2, 3]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2.0**53, -(2.0**53)])
def test_what_cannot_be_rounded_exactly_is_refused(value: float) -> None:
    message = "a value to be rounded must be finite and below 2**53 in magnitude"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        numeric.to_integer([0.0, value])


@pytest.mark.parametrize(
    ("x", "bits", "expected"),
    [
        (0.5, 8, (1, 1)),
        (1.0, 8, (1, 0)),
        (0.0, 8, (0, 0)),
        (0.75, 8, (3, 2)),
        (0.3, 4, (5, 4)),
        (0.3, 0, (0, 0)),
        (0.9, 3, (7, 3)),
    ],
)
def test_ratios_by_hand(x: float, bits: int, expected: tuple[int, int]) -> None:
    assert numeric.to_ratio(x, bits) == expected


@given(st.floats(0, 1), st.integers(0, 16))
def test_a_ratio_is_the_nearest_and_in_lowest_terms(x: float, bits: int) -> None:
    m, used = numeric.to_ratio(x, bits)
    assert 0 <= used <= bits
    assert m % 2 == 1 or used == 0
    assert abs(Fraction(m, 1 << used) - Fraction(x)) <= Fraction(1, 2 << bits)


@pytest.mark.parametrize("x", [-0.1, 1.1, float("nan")])
def test_a_decay_outside_0_to_1_is_refused(x: float) -> None:
    message = f"a decay must lie between 0 and 1, not {x!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        numeric.to_ratio(x, 8)


@given(st.integers(-(2**40), 2**40), st.integers(0, 2**16), st.integers(0, 16))
def test_decay_rounds_down(v: int, m: int, bits: int) -> None:
    expected = m * v // 2**bits
    assert numeric.decay(v, m, bits) == expected
    assert numeric.decay(np.array([v]), m, bits).tolist() == [expected]


@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=20),
    st.integers(1, 2**25),
    st.integers(1, 31),
)
def test_a_level_is_a_clipped_floor_division(us: list[int], theta: int, capacity: int) -> None:
    expected = [min(max(u // theta, 0), capacity) for u in us]
    levels = numeric.burst_level(np.array(us), np.array([theta]), capacity)
    assert levels.dtype == np.uint8
    assert levels.tolist() == expected


def test_levels_change_exactly_at_multiples_of_the_step() -> None:
    u = np.array([-1, 0, 6, 7, 13, 14, 20, 21, 27, 28, 1000])
    assert numeric.burst_level(u, np.array([7]), 3).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3]


def test_each_channel_has_its_own_step() -> None:
    levels = numeric.burst_level(np.array([[10, 10], [4, 4]]), np.array([2, 5]), 31)
    assert levels.tolist() == [[5, 2], [2, 0]]


@pytest.mark.parametrize(
    ("capacity", "planes"), [(1, 1), (2, 2), (3, 2), (5, 3), (10, 4), (20, 5), (31, 5), (255, 8)]
)
def test_planes_of_a_capacity(capacity: int, planes: int) -> None:
    assert numeric.plane_count(capacity) == planes


@pytest.mark.parametrize(("bits", "limit"), [(2, 1), (3, 3), (4, 7), (8, 127), (16, 32767)])
def test_weight_codes_are_symmetric(bits: int, limit: int) -> None:
    assert numeric.weight_limit(bits) == limit


@pytest.mark.parametrize("bits", [-1, 0, 1, 17])
def test_weight_bits_out_of_range_are_refused(bits: int) -> None:
    message = f"weight bits must be between 2 and 16, not {bits}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        numeric.weight_limit(bits)


def test_weight_bits_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^weight bits must be an integer, not 8\.0$"):
        numeric.weight_limit(8.0)  # pyright: ignore[reportArgumentType]


@given(st.integers(-(2**60), 2**60), st.integers(-(2**60), 2**60))
def test_a_signed_width_fits_and_is_the_smallest_that_does(a: int, b: int) -> None:
    low, high = sorted((a, b))
    bits = numeric.signed_width(low, high)
    assert -(2 ** (bits - 1)) <= low
    assert high < 2 ** (bits - 1)
    if bits > 1:
        assert low < -(2 ** (bits - 2)) or high >= 2 ** (bits - 2)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([], "int8"),
        ([-128, 127], "int8"),
        ([128], "int16"),
        ([-32769], "int32"),
        ([2**31], "int64"),
    ],
)
def test_the_narrowest_dtype(values: list[int], dtype: str) -> None:
    assert numeric.smallest_integer_dtype(np.array(values, np.int64)) == dtype


def test_sum_bounds_are_attained_and_never_exceeded() -> None:
    weights = np.array([[3, -2, 0], [-1, -4, -5], [7, 1, 2]])
    low, high = numeric.sum_bounds(weights, 2)
    for row, lowest, highest in zip(weights, low, high, strict=True):
        sums = [int(row @ s) for s in itertools.product(range(3), repeat=3)]
        assert (min(sums), max(sums)) == (lowest, highest)


def test_float_types_follow_the_bound() -> None:
    assert numeric.exact_float_dtype((1 << 24) - 1) == np.float32
    assert numeric.exact_float_dtype(1 << 24) == np.float64
    assert numeric.exact_float_dtype((1 << 53) - 1) == np.float64
    message = "a sum may reach 9007199254740992, beyond the 2**53 that float64 holds exactly"
    with pytest.raises(OverflowError, match=f"^{re.escape(message)}$"):
        numeric.exact_float_dtype(1 << 53)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 5), st.integers(0, 4))
def test_windows_that_fit(size: int, kernel: int, stride: int, padding: int) -> None:
    starts = range(-padding, size + padding - kernel + 1, stride)
    if size + 2 * padding >= kernel:
        assert numeric.window_count(size, kernel, stride, padding) == len(starts)
    else:
        assert numeric.window_count(size, kernel, stride, padding) <= 0
