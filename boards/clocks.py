"""Clock generators: the settings of a PLL that come nearest to a clock without exceeding it.

The PLLs and their limits are those of `lbq_hw.families`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from lbq_hw import families
from lbq_hw.families.base import MHZ


class ClockError(ValueError):
    """A clock that a board cannot make; one sentence."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Parameters of a PLL's primitive, and the clock that they make."""

    pll: str
    input_hz: int
    output_hz: int
    parameters: dict[str, int]


def solve(pll: str, input_hz: int, target_hz: int) -> Setting | None:
    """The fastest clock of at most `target_hz`, in whole Hz; None if that is the input itself. A
    clock that was found before is found again, also if it was rounded down.

    If several settings make the clock, the oscillator nearest the middle of its range is chosen,
    and then the fastest phase detector, which has the least jitter. Some clocks leave no choice: 80
    MHz of 25 MHz on an ECP5 need an oscillator at 400 or 800 MHz, 60 MHz of 27 MHz on a Gowin a
    phase detector at 3 MHz, and these limits are inclusive. ClockError if the PLL cannot come
    within a fifth of the target.
    """
    if target_hz == input_hz:
        return None
    made = families.plls()[pll]
    low, high = made.limits.input
    if not low * MHZ <= input_hz <= high * MHZ:
        raise ClockError(f"the input of a PLL must be {low} to {high} MHz, not {_mhz(input_hz)}")
    middle = Fraction(sum(made.limits.oscillator) * MHZ) / 2
    best: tuple[Fraction, Fraction, Fraction, dict[str, int]] | None = None
    tried = (made.search(input_hz, aim, made.limits) for aim in (target_hz, target_hz + 1))
    for detector, oscillator, output, parameters in chain.from_iterable(tried):
        if round(output) > target_hz or not made.limits.allow(detector, oscillator, output):
            continue
        found = (output, -abs(oscillator - middle), detector)
        if best is None or found > best[:3]:
            best = (*found, parameters)
    if best is None or best[0] < Fraction(4, 5) * target_hz:
        low, high = made.limits.output
        raise ClockError(
            f"the clock must be one that the PLL makes of {_mhz(input_hz)} ({low} to {high} MHz), "
            f"not {_mhz(target_hz)}"
        )
    return Setting(pll=pll, input_hz=input_hz, output_hz=round(best[0]), parameters=best[3])


def _mhz(hertz: int) -> str:
    return f"{hertz / MHZ:.4g} MHz"
