"""Formats numbers for commands: three significant digits, a prefix, a unit."""

from __future__ import annotations


def three_digits(value: float) -> str:
    """``0.01``, ``9.99``, ``99.9``, ``1,234``: from 1 on at least three significant digits."""
    return f"{value:,.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def si(value: float) -> str:
    """Three significant digits and a prefix: ``92.1 k``."""
    for prefix, unit in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * unit:
            return f"{three_digits(value / unit)} {prefix}"
    return three_digits(value)


def seconds(value: float) -> str:
    """Three significant digits of a time: ``54.2 us``, ``1.23 ms``, ``12.3 s``."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 0.9995:
            return f"{three_digits(value * scale)} {unit}"
    return f"{three_digits(value * 1e9)} ns"


def megahertz(hertz: float) -> str:
    """At most four significant digits of a clock: ``75 MHz``, ``53.33 MHz``."""
    return f"{hertz / 1e6:.4g} MHz"


def images(count: int) -> str:
    """``1 image``, ``20 images``."""
    return f"{count:,} image" if count == 1 else f"{count:,} images"
