from __future__ import annotations

import pytest

from lbq_hw import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (99.94, "99.9"),
        (99.96, "100"),
        (1234.5, "1,234"),
    ],
)
def test_three_digits_are_shown(value: float, text: str) -> None:
    assert units.three_digits(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.50"), (999.4, "999"), (999.6, "1.00 k"), (92_100, "92.1 k"), (1.07e9, "1.07 G")],
)
def test_a_count_has_a_prefix(value: float, text: str) -> None:
    assert units.si(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12.34, "12.3 s"),
        (0.9996, "1.00 s"),
        (0.00123, "1.23 ms"),
        (54.18e-6, "54.2 us"),
        (3e-9, "3.00 ns"),
    ],
)
def test_a_time_has_the_unit_that_fits(value: float, text: str) -> None:
    assert units.seconds(value) == text


def test_a_clock_has_four_digits_and_one_image_no_plural() -> None:
    assert [units.megahertz(hertz) for hertz in (75e6, 160e6 / 3, 26.5e6)] == [
        "75 MHz",
        "53.33 MHz",
        "26.5 MHz",
    ]
    assert [units.images(count) for count in (1, 20, 10_000)] == [
        "1 image",
        "20 images",
        "10,000 images",
    ]
