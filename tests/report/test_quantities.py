from __future__ import annotations

from collections.abc import Callable

import pytest

from lbq_hw.report.quantities import SPACE, count, duration, mega, quantity, share


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "s", "0 s"),
        (0.000143, "s", "143 µs"),
        (3.95e-9, "J", "3.95 nJ"),
        (0.9996, "s", "1.00 s"),
        (999.4, "", "999"),
        (999.6, "", "1.00 k"),
        (38_640.0, "", "38.6 k"),
        (12e6, "Hz", "12.0 MHz"),
        (-2.5e-3, "s", "-2.50 ms"),
        (5e12, "", "5000 G"),
        (1e-14, "J", "0.0100 pJ"),
    ],
)
def test_a_quantity_has_three_digits_and_a_prefix(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text.replace(" ", SPACE)


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (count, 6234, "6,234"),
        (count, 794.0, "794"),
        (count, 75.6667, "75.7"),
        (count, 943.6667, "944"),
        (share, 0.71507, "71.5 %"),
        (mega, 24e6, "24.0 MHz"),
        (duration, 0.4, "0.40 s"),
        (duration, 59.96, "60.0 s"),
        (duration, 200.4, "3 min 20 s"),
    ],
)
def test_numbers_are_written_for_people(
    form: Callable[[float], str], value: float, text: str
) -> None:
    assert form(value).replace(SPACE, " ") == text
