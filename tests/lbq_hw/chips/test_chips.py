"""Chips: what their timings are in cycles, and what is refused."""

from __future__ import annotations

import dataclasses
import re

import pytest

from lbq_hw.chips import CHIPS, TANG_NANO_20K, ULX3S, Chip


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
@pytest.mark.parametrize("clock_hz", [25_000_000, 66_666_667, 80_000_000, 100_000_000, 133_333_333])
def test_cycles_last_at_least_as_long_as_the_chip_needs(chip: Chip, clock_hz: int) -> None:
    cycles = chip.cycles(clock_hz)
    for name in ("rcd", "rp", "ras", "rfc", "wr", "mrd", "power_up"):
        assert getattr(cycles, name) * 10**12 >= getattr(chip, name) * clock_hz, name
        assert getattr(cycles, name) >= 1
    assert (cycles.ras + cycles.rp) * 10**12 >= chip.rc * clock_hz
    assert cycles.wr >= 2
    assert cycles.mrd >= 2
    rows, late = 1 << chip.row_bits, chip.page_words + cycles.rcd + cycles.ras + cycles.rp
    assert (rows * cycles.refresh + late) * 10**12 < rows * chip.refresh * clock_hz
    assert chip.period * clock_hz <= 10**12


def test_no_cycle_is_wasted_at_80_mhz() -> None:
    cycles = ULX3S.cycles(80_000_000)
    assert (cycles.rcd, cycles.rp, cycles.ras) == (2, 2, 4)
    assert (cycles.rfc, cycles.wr, cycles.mrd, cycles.refresh) == (6, 2, 2, 624)
    assert cycles.power_up == 16_000


def test_a_refresh_of_every_chip_has_70_ns() -> None:
    assert {chip.rfc for chip in CHIPS} == {70_000}
    assert TANG_NANO_20K.cycles(60_000_000).rfc == 5


def test_boards_have_the_memory_of_their_data_sheets() -> None:
    sizes = {chip.name: chip.size_bytes >> 20 for chip in CHIPS}
    assert sizes == {"ULX3S": 32, "iCESugar-pro": 32, "Tang Nano 20K": 8, "Colorlight": 8}
    assert (ULX3S.pin_bits, TANG_NANO_20K.pin_bits) == (13, 11)
    assert ULX3S.tape_bytes == (32 << 20) - 32
    assert TANG_NANO_20K.tape_bytes == (8 << 20) - 64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rcd": 0}, "rcd must be a positive integer, not 0"),
        ({"rp": 20.5}, "rp must be a positive integer, not 20.5"),
        ({"data_bits": 8}, "data_bits must be 16 or 32, not 8"),
        ({"column_bits": 11}, "column_bits must be at most 10, not 11"),
        ({"row_bits": 1 << 40}, f"row_bits must be at most 16, not {1 << 40}"),
        ({"hold": 5400}, "hold must be less than access (5400), not 5400"),
        (
            {"delay_least": 6000, "delay_most": 5999},
            "delay_least must be at most delay_most (5999), not 6000",
        ),
    ],
)
def test_a_chip_that_cannot_be_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        dataclasses.replace(ULX3S, **change)


@pytest.mark.parametrize(
    ("clock_hz", "message"),
    [
        (0, "clock_hz must be a positive integer, not 0"),
        (80e6, "clock_hz must be a positive integer, not 80000000.0"),
        (150_000_000, "clock_hz must be at most 133333333 for ULX3S, not 150000000"),
        (300_000, "clock_hz must leave ULX3S time between refreshes, not be 300000"),
    ],
)
def test_a_clock_that_a_chip_cannot_have_is_refused(clock_hz: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ULX3S.cycles(clock_hz)
