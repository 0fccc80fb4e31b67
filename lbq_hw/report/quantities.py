"""Numbers for people: three digits, a prefix, a thin space before the unit."""

from __future__ import annotations

import math

from lbq_hw.units import images

SPACE = "\N{NARROW NO-BREAK SPACE}"
_DIGITS = 3
_PREFIXES = {9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "µ", -9: "n", -12: "p"}


def quantity(value: float, unit: str = "") -> str:
    """``12.3 k``, ``171 µs``: three significant digits and a prefix before the unit."""
    if value == 0:
        return f"0{SPACE}{unit}" if unit else "0"
    exponent = math.floor(math.log10(abs(value)))
    if round(abs(value) / 10**exponent, _DIGITS - 1) >= 10:  # 999.6 is 1.00 k
        exponent += 1
    power = min(max(3 * (exponent // 3), min(_PREFIXES)), max(_PREFIXES))
    text = f"{value / 10**power:.{max(_DIGITS - 1 - (exponent - power), 0)}f}"
    suffix = _PREFIXES[power] + unit
    return f"{text}{SPACE}{suffix}" if suffix else text


def count(value: float) -> str:
    """A number with thousands separators; a mean that is not whole keeps one decimal below 100."""
    whole = float(value).is_integer() or value >= 100
    return f"{value:,.0f}" if whole else f"{value:,.1f}"


def share(value: float, *, decimals: int = 1) -> str:
    """0.973 as ``97.3 %``."""
    return f"{100 * value:.{decimals}f}{SPACE}%"


def change(value: float) -> str:
    """0.13 as ``+13 %``."""
    return f"{100 * value:+.0f}{SPACE}%"


def percent(value: float) -> str:
    """A length for SVG: ``12.5%``."""
    return f"{100 * value:.3f}".rstrip("0").rstrip(".") + "%"


def kibibytes(bits: int) -> str:
    """``12.5 KiB``, or bytes if there are fewer than 1024."""
    return f"{bits / 8192:,.1f}{SPACE}KiB" if bits >= 8192 else f"{-(-bits // 8)}{SPACE}bytes"


def mega(hertz: float) -> str:
    """``24.0 MHz``."""
    return f"{hertz / 1e6:.1f}{SPACE}MHz"


def duration(seconds: float) -> str:
    """The time of a step: ``0.42 s``, ``3 min 20 s``."""
    if seconds < 60:
        return f"{seconds:.{2 if seconds < 10 else 1}f}{SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}{SPACE}min {rest:02d}{SPACE}s"


FORMATS = (quantity, count, images, share, change, percent, kibibytes, mega, duration)
