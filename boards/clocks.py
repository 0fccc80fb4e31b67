"""Clock generators: the settings of a PLL that come nearest to a clock without exceeding it.

Limits are those of the data sheets: iCE40 (FPGA-DS-02008, -02029; FPGA-TN-02052), ECP5
(FPGA-DS-02012; FPGA-TN-02200), GW1NR (DS117) and GW2AR (DS226).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

MHZ = 1_000_000
_Tried = tuple[Fraction, Fraction, Fraction, dict[str, int]]  # phase detector, VCO, output


class ClockError(ValueError):
    """A clock that a board cannot make; one sentence."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds in MHz, inclusive: the input, the phase detector, the oscillator, the output."""

    input: tuple[float, float]
    detector: tuple[float, float]
    oscillator: tuple[float, float]
    output: tuple[float, float]

    def allow(self, detector: Fraction, oscillator: Fraction, output: Fraction) -> bool:
        pairs = (
            (self.detector, detector),
            (self.oscillator, oscillator),
            (self.output, output),
        )
        return all(low * MHZ <= value <= high * MHZ for (low, high), value in pairs)


@dataclass(frozen=True, kw_only=True)
class PLL:
    """A kind of PLL: its primitive's `kind`, the `family` that has it, and its limits."""

    kind: str
    family: str
    limits: Limits


_ICE40 = Limits(input=(10, 133), detector=(10, 133), oscillator=(533, 1066), output=(16, 275))
PLLS = {
    # A pin that belongs to the PLL can feed nothing else: only the PLL's primitive may use it.
    "sb_pll40_pad": PLL(kind="sb_pll40", family="ice40", limits=_ICE40),
    "sb_pll40_core": PLL(kind="sb_pll40", family="ice40", limits=_ICE40),
    "ehxplll": PLL(
        kind="ehxplll",
        family="ecp5",
        limits=Limits(
            input=(8, 400), detector=(10, 400), oscillator=(400, 800), output=(3.125, 400)
        ),
    ),
    "rpll_gw1nr": PLL(
        kind="rpll",
        family="gowin",
        limits=Limits(
            input=(3, 400), detector=(3, 400), oscillator=(400, 1200), output=(3.125, 600)
        ),
    ),
    "rpll_gw2ar": PLL(
        kind="rpll",
        family="gowin",
        limits=Limits(
            input=(3, 500), detector=(3, 500), oscillator=(500, 1250), output=(3.90625, 625)
        ),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Parameters of a PLL's primitive, and the clock that they make."""

    pll: str
    input_hz: int
    output_hz: int
    parameters: dict[str, int]


def solve(pll: str, input_hz: int, target_hz: int) -> Setting | None:
    """The fastest clock that is at most `target_hz`; None where that is the input itself.

    Of settings that make it, the one whose oscillator is nearest the middle of its range; of
    those, the one with the fastest phase detector, which has the least jitter. Some clocks leave
    no choice: 80 MHz of 25 MHz on an ECP5 need an oscillator at 400 or 800 MHz, 60 MHz of 27 MHz
    on a Gowin a phase detector at 3 MHz, and these limits are inclusive. ClockError if the PLL
    can make none within a fifth of the target.
    """
    if target_hz == input_hz:
        return None
    made = PLLS[pll]
    low, high = made.limits.input
    if not low * MHZ <= input_hz <= high * MHZ:
        raise ClockError(f"the input of a PLL must be {low} to {high} MHz, not {_mhz(input_hz)}")
    middle = Fraction(sum(made.limits.oscillator) * MHZ) / 2
    best: tuple[Fraction, Fraction, Fraction, dict[str, int]] | None = None
    for detector, oscillator, output, parameters in _SEARCH[made.kind](
        input_hz, target_hz, made.limits
    ):
        if output > target_hz or not made.limits.allow(detector, oscillator, output):
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
    return f"{hertz / MHZ:g} MHz"


def _sb_pll40(input_hz: int, target_hz: int, limits: Limits) -> Iterator[_Tried]:
    """SIMPLE feedback: the oscillator is the phase detector times DIVF + 1."""
    for divr in range(16):
        detector = Fraction(input_hz, divr + 1)
        fastest = int(limits.oscillator[1] * MHZ / detector)
        steps = ((17, 1), (26, 2), (44, 3), (66, 4), (101, 5))
        filter_range = next((code for below, code in steps if detector < below * MHZ), 6)
        for divq in range(1, 7):
            divf = min(int(target_hz * (1 << divq) / detector), fastest, 128) - 1
            oscillator = detector * (divf + 1)
            parameters = {"DIVR": divr, "DIVF": divf, "DIVQ": divq, "FILTER_RANGE": filter_range}
            yield detector, oscillator, oscillator / (1 << divq), parameters


def _ehxplll(input_hz: int, target_hz: int, limits: Limits) -> Iterator[_Tried]:
    """Feedback from CLKOS, undivided: it is the phase detector's clock, times CLKOS_DIV the
    oscillator's. CLKOP, of the same oscillator, is the clock.
    """
    slowest, fastest = (bound * MHZ for bound in limits.oscillator)
    for clki in range(1, int(input_hz / (limits.detector[0] * MHZ)) + 1):
        detector = Fraction(input_hz, clki)
        for clkos in range(ceil(slowest / detector), min(int(fastest / detector), 128) + 1):
            oscillator = detector * clkos
            clkop = min(ceil(oscillator / target_hz), 128)
            parameters = {"CLKI_DIV": clki, "CLKFB_DIV": 1, "CLKOP_DIV": clkop, "CLKOS_DIV": clkos}
            yield detector, oscillator, oscillator / clkop, parameters


def _rpll(input_hz: int, target_hz: int, limits: Limits) -> Iterator[_Tried]:
    for idiv in range(min(64, int(input_hz / (limits.detector[0] * MHZ)))):
        detector = Fraction(input_hz, idiv + 1)
        fbdiv = min(int(target_hz / detector), 64) - 1
        output = detector * (fbdiv + 1)
        for odiv in (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128):
            parameters = {"IDIV_SEL": idiv, "FBDIV_SEL": fbdiv, "ODIV_SEL": odiv}
            yield detector, output * odiv, output, parameters


_SEARCH = {"sb_pll40": _sb_pll40, "ehxplll": _ehxplll, "rpll": _rpll}
