"""PLL settings against formulas and limits of the data sheets, written down again here."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbq_hw.boards.clocks import ClockError, Setting, solve

MHZ = 1_000_000


def frequencies(setting: Setting) -> tuple[Fraction, Fraction, Fraction]:
    """Phase detector, oscillator and output in MHz, by the primitive's own formulas."""
    p, clock = setting.parameters, Fraction(setting.input_hz, MHZ)
    if setting.pll.startswith("sb_pll40"):
        detector = clock / (p["DIVR"] + 1)
        oscillator = detector * (p["DIVF"] + 1)
        return detector, oscillator, oscillator / 2 ** p["DIVQ"]
    if setting.pll == "ehxplll":
        detector = clock / p["CLKI_DIV"]
        oscillator = detector * p["CLKFB_DIV"] * p["CLKOS_DIV"]
        return detector, oscillator, oscillator / p["CLKOP_DIV"]
    detector = clock / (p["IDIV_SEL"] + 1)
    output = detector * (p["FBDIV_SEL"] + 1)
    return detector, output * p["ODIV_SEL"], output


# PLL, input, phase detector, oscillator, output: MHz
SHEETS = {
    "sb_pll40_pad": (12, (10, 133), (533, 1066), (16, 275)),
    "sb_pll40_core": (12, (10, 133), (533, 1066), (16, 275)),
    "ehxplll": (25, (10, 400), (400, 800), (3.125, 400)),
    "rpll_gw1nr": (27, (3, 400), (400, 1200), (3.125, 600)),
    "rpll_gw2ar": (27, (3, 500), (500, 1250), (3.90625, 625)),
}


@pytest.mark.parametrize("pll", SHEETS)
@given(target=st.integers(20 * MHZ, 150 * MHZ))
def test_a_setting_keeps_every_limit_and_never_exceeds_its_target(pll: str, target: int) -> None:
    clock, *limits = SHEETS[pll]
    setting = solve(pll, clock * MHZ, target)
    if setting is None:
        assert target == clock * MHZ
        return
    found = frequencies(setting)
    assert all(low <= value <= high for value, (low, high) in zip(found, limits, strict=True))
    assert 0.8 * target <= setting.output_hz <= target
    assert setting.output_hz == round(found[2] * MHZ)
    again = solve(pll, clock * MHZ, setting.output_hz)  # as the step rtl asks for what fit found
    assert again is None or again.output_hz == setting.output_hz


@pytest.mark.parametrize(
    ("pll", "clock", "target", "parameters"),
    [
        # what icepll prints for the same clocks
        ("sb_pll40_pad", 12, 24, {"DIVR": 0, "DIVF": 63, "DIVQ": 5, "FILTER_RANGE": 1}),
        ("sb_pll40_pad", 12, 30, {"DIVR": 0, "DIVF": 79, "DIVQ": 5, "FILTER_RANGE": 1}),
        # what gowin_pll prints for them; its oscillator of 54 MHz is the slowest (ODIV_SEL 8)
        ("rpll_gw1nr", 27, 54, {"IDIV_SEL": 0, "FBDIV_SEL": 1, "ODIV_SEL": 16}),
        ("rpll_gw2ar", 27, 60, {"IDIV_SEL": 8, "FBDIV_SEL": 19, "ODIV_SEL": 16}),
    ],
)
def test_known_settings(pll: str, clock: int, target: int, parameters: dict[str, int]) -> None:
    setting = solve(pll, clock * MHZ, target * MHZ)
    assert setting is not None
    assert setting.parameters == parameters


@pytest.mark.parametrize(
    ("pll", "clock", "target", "oscillator"),
    [
        ("ehxplll", 25, 75, 600),
        ("ehxplll", 100, 80, 560),  # 640 is as near the middle
        ("ehxplll", 48, 80, 560),
        ("ehxplll", 25, 80, 400),  # or 800, and nothing between
        ("rpll_gw1nr", 27, 54, 864),
        ("rpll_gw2ar", 27, 60, 960),
        ("sb_pll40_core", 12, 48, 768),
    ],
)
def test_the_oscillator_is_near_the_middle_of_its_range(
    pll: str, clock: int, target: int, oscillator: int
) -> None:
    setting = solve(pll, clock * MHZ, target * MHZ)
    assert setting is not None
    assert frequencies(setting)[1:] == (oscillator, target)


def test_the_input_itself_needs_no_pll() -> None:
    assert solve("ehxplll", 25 * MHZ, 25 * MHZ) is None


@pytest.mark.parametrize(
    ("pll", "clock", "target", "message"),
    [
        (
            "sb_pll40_pad",
            12,
            10,
            "the clock must be one that the PLL makes of 12 MHz (16 to 275 MHz), not 10 MHz",
        ),
        (
            "ehxplll",
            25,
            900,
            "the clock must be one that the PLL makes of 25 MHz (3.125 to 400 MHz), not 900 MHz",
        ),
        ("sb_pll40_core", 8, 24, "the input of a PLL must be 10 to 133 MHz, not 8 MHz"),
    ],
)
def test_a_clock_out_of_reach_is_refused(pll: str, clock: int, target: int, message: str) -> None:
    with pytest.raises(ClockError, match=f"^{re.escape(message)}$"):
        solve(pll, clock * MHZ, target * MHZ)
