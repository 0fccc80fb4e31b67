"""Times between the commands of an SDRAM, for every chip of the table, at slow and fast clocks."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from amaranth import Const

from lbq_hw.chips import CHIPS, Chip
from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_CLOCKS = (25_000_000, 66_000_000, 133_000_000)
_TWO = 2  # cycles of write recovery, and after the mode register, at least
_PICOSECONDS = 10**12


def _rules(chip: Chip, clock_hz: int) -> list[tuple[str, str, int]]:
    """Which command may follow which after how many cycles, from the times of the data sheet."""

    def cycles(time: int) -> int:
        return -(-time * clock_hz // _PICOSECONDS)

    rules = [("ACTIVATE", name, cycles(chip.rcd)) for name in ("READ", "WRITE")]
    rules += [("PRECHARGE", name, cycles(chip.rp)) for name in ("ACTIVATE", "REFRESH", "MODE")]
    rules += [
        ("ACTIVATE", "PRECHARGE", cycles(chip.ras)),
        ("ACTIVATE", "ACTIVATE", cycles(chip.rc)),
        ("WRITE", "PRECHARGE", max(_TWO, cycles(chip.wr))),
    ]
    later = ("ACTIVATE", "READ", "WRITE", "REFRESH", "PRECHARGE", "MODE")
    rules += [("REFRESH", name, cycles(chip.rfc)) for name in later]
    rules += [("MODE", name, max(_TWO, cycles(chip.mrd))) for name in later]
    return rules


def _longest(chip: Chip, clock_hz: int) -> int:
    return max(least for _, _, least in _rules(chip, clock_hz))


def _times(code: ModuleType, chip: Chip, clock_hz: int) -> Contract:
    c = Contract()
    block = c.add(code.Sequencer(chip=chip, clock_hz=clock_hz))
    now: Any = block.command.as_value()
    past = [now]
    for _ in range(_longest(chip, clock_hz)):
        past.append(c.before(past[-1], 1))
    for before, after, least in _rules(chip, clock_hz):
        first, second = (code.Command[name].value for name in (before, after))
        soon: Any = Const(0, 1)
        for one in past[1:least]:
            soon |= one == first
        c.must(~((now == second) & soon))
    return c


def _proof(chip: Chip, clock_hz: int) -> Proof:
    megahertz = clock_hz // 1_000_000
    name = chip.name.lower().replace(" ", "-")
    return Proof(
        name=f"sdram-{name}-{megahertz}",
        says=f"Sequencer: times between commands, {chip.name} at {megahertz} MHz",
        module="lbq_hw.core.external.sequencer",
        contract=lambda code: _times(code, chip, clock_hz),
        bug=Bug(old="hold.eq(cycles.ras - 1)", new="hold.eq(0)")
        if clock_hz > 100_000_000
        else Bug(old="rest.eq(cycles.rfc - 1)", new="rest.eq(0)"),
        cycles=_longest(chip, clock_hz) + 2,
        always=True,
        fast=chip is CHIPS[0] and clock_hz == _CLOCKS[-1],
    )


PROOFS = tuple(_proof(chip, clock_hz) for chip in CHIPS for clock_hz in _CLOCKS)
