"""Commands of an SDRAM: their times and their order, for every chip, at slow and fast clocks."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

from amaranth import Cat, Const, Mux, Signal

from lbq_hw.chips import CHIPS, ULX3S, Chip
from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_CLOCKS = (25_000_000, 66_000_000, 133_000_000)
_TWO = 2  # cycles of write recovery, and after the mode register, at least
_PICOSECONDS = 10**12
_MODULE = "lbq_hw.core.external.sequencer"
_REFRESHES = 8  # before the mode register is set
_MODE = 0b10_0011_0111  # single writes, a CAS latency of 3, sequential reads of a full page
_ALL_BANKS = 10  # the address pin of a precharge
_SHORT = 2  # bits of a column, so that a proof need not wait for a long page


def _rules(chip: Chip, clock_hz: int) -> list[tuple[str, str, int]]:
    """The minimum number of cycles between commands, from the times of the data sheet."""

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


class _Told:
    """The commands that an SDRAM has received so far, and the access that they belong to.

    Members
    -------
    block : `Sequencer`
    now : dictionary
        Whether a command is on the pins, by its name.
    taken : bit
        An access is taken.
    asked, owed
        The last access that was taken; it is not read or written yet.
    opened, bank, row
        Whether a row is open, and which.
    mode : bit
        The mode register is set.
    rests : bit
        No access is under way.
    silent : bit
        No command came for longer than any time between two commands: once the mode is set, that
        never happens.
    """

    def __init__(self, c: Contract, code: ModuleType, chip: Chip, clock_hz: int) -> None:
        self.block = block = c.add(code.Sequencer(chip=chip, clock_hz=clock_hz))
        pins = block.command.as_value()
        self.now = now = {one.name: pins == one.value for one in code.Command}
        self.taken = block.access.valid & block.access.ready
        self.asked: Any = Signal(block.access.payload.shape())
        self.owed, self.opened, self.mode = Signal(), Signal(), Signal()
        self.bank, self.row = Signal(chip.bank_bits), Signal(chip.row_bits)
        with c.m.If(self.taken):
            c.m.d.sync += [self.asked.eq(block.access.payload), self.owed.eq(1)]
        with c.m.If(now["READ"] | now["WRITE"]):
            c.m.d.sync += self.owed.eq(0)
        with c.m.If(now["ACTIVATE"]):
            c.m.d.sync += [self.opened.eq(1), self.bank.eq(block.ba), self.row.eq(block.a)]
        with c.m.If(now["PRECHARGE"]):
            c.m.d.sync += self.opened.eq(0)
        with c.m.If(now["MODE"]):
            c.m.d.sync += self.mode.eq(1)
        self.rests = now["PRECHARGE"] | now["REFRESH"] | now["MODE"] | block.idle
        most = _longest(chip, clock_hz) + 1
        quiet = Signal(range(most + 1))
        with c.m.If(~now["NONE"] | block.idle | block.read):
            c.m.d.sync += quiet.eq(0)
        with c.m.Elif(quiet != most):
            c.m.d.sync += quiet.eq(quiet + 1)
        self.silent = quiet == most


def _order(code: ModuleType, chip: Chip, clock_hz: int) -> Contract:
    """Each access opens its row, uses it and closes it; nothing else opens or closes a row."""
    c = Contract()
    told = _Told(c, code, chip, clock_hz)
    block, now, asked, opened = told.block, told.now, told.asked, told.opened
    low, high = chip.column_bits, chip.column_bits + chip.bank_bits
    column, bank, row = asked.address[:low], asked.address[low:high], asked.address[high:]
    uses = now["READ"] | now["WRITE"]
    closed = now["ACTIVATE"] | now["REFRESH"] | now["MODE"] | (block.idle & ~now["PRECHARGE"])
    c.must(now["ACTIVATE"] == c.before(told.taken, 1), after=1)
    c.must(~now["ACTIVATE"] | ((block.ba == bank) & (block.a == row)))
    c.must(~uses | (opened & told.owed & (now["WRITE"] == asked.write)))
    c.must(~uses | ((told.bank == bank) & (told.row == row)))
    c.must(~uses | ((block.ba == bank) & (block.a == column)))
    c.must(~now["WRITE"] | (block.dq_oe & (block.dq_o == asked.data)))
    c.must(~now["PRECHARGE"] | block.a[_ALL_BANKS])
    c.must(~closed | ~opened)
    c.must(~told.rests | ~told.owed)
    c.must(~(now["ACTIVATE"] | uses | block.idle | ~block.dqm.all()) | told.mode)
    c.must(~told.silent | ~(opened | told.owed | told.mode))
    _words(c, told)
    return c


def _words(c: Contract, told: _Told) -> None:
    """A read asks for its words in a row, from its command on, and is not cut short."""
    reads, wanted = told.block.read, told.block.access.payload
    left, before = Signal(len(wanted.more) + 1), c.before(reads, 1)
    with c.m.If(told.taken):
        c.m.d.sync += left.eq(Mux(wanted.write, 0, wanted.more + 1))
    with c.m.Elif(reads):
        c.m.d.sync += left.eq(left - 1)
    c.must(~reads | (left != 0))
    c.must(~(before & (left != 0)) | reads, after=1)
    c.must(told.now["READ"] == (before & ~c.before(reads, 2)), after=2)
    c.must(~(told.rests | told.silent) | (left == 0))


def _start(code: ModuleType, chip: Chip, clock_hz: int) -> Contract:
    """After power-up come a precharge, refreshes and the mode, in this order, before all else."""
    c = Contract()
    told = _Told(c, code, chip, clock_hz)
    block, now = told.block, told.now
    age, power_up = Signal(8), chip.cycles(clock_hz).power_up
    precharged, refreshes = Signal(), Signal(range(_REFRESHES + 1))
    c.m.d.sync += [age.eq(age + 1), precharged.eq(precharged | now["PRECHARGE"])]
    with c.m.If(now["REFRESH"] & (refreshes != _REFRESHES)):
        c.m.d.sync += refreshes.eq(refreshes + 1)
    c.must(now["NONE"] | ((age >= power_up) & block.clk_en))
    c.must(now["NONE"] | now["PRECHARGE"] | precharged)
    c.must(~now["MODE"] | ((refreshes == _REFRESHES) & ~told.mode))
    c.must(~now["MODE"] | (Cat(block.a, block.ba) == _MODE))
    c.must(~(now["ACTIVATE"] | now["READ"] | now["WRITE"] | block.idle) | told.mode)
    c.must(block.dqm.all() | told.mode)
    return c


def _times_of(chip: Chip, clock_hz: int) -> Proof:
    return Proof(
        name=f"sdram-{_name(chip, clock_hz)}",
        says=f"Sequencer: times between commands, {_at(chip, clock_hz)}",
        module=_MODULE,
        contract=lambda code: _times(code, chip, clock_hz),
        bug=Bug(old="hold.eq(cycles.ras - 1)", new="hold.eq(0)")
        if clock_hz > 100_000_000
        else Bug(old="rest.eq(cycles.rfc - 1)", new="rest.eq(0)"),
        cycles=_longest(chip, clock_hz) + 2,
        always=True,
        fast=chip is CHIPS[0] and clock_hz == _CLOCKS[-1],
    )


def _order_of(chip: Chip, clock_hz: int) -> Proof:
    """Within its cycles, a page is read and a start is over, whatever the state was."""
    short = replace(chip, column_bits=_SHORT)
    start = 2 * _REFRESHES * chip.cycles(clock_hz).rfc
    return Proof(
        name=f"sdram-order-{_name(chip, clock_hz)}",
        says="Sequencer: an access opens its row, uses it and closes it, pages of "
        f"{short.page_words}, {_at(chip, clock_hz)}",
        module=_MODULE,
        contract=lambda code: _order(code, short, clock_hz),
        bug=_ORDER_BUGS[clock_hz],
        cycles=start + 2 * _longest(chip, clock_hz) + 2 * short.page_words,
        always=True,
        fast=chip is CHIPS[0] and clock_hz == _CLOCKS[0],
    )


def _name(chip: Chip, clock_hz: int) -> str:
    return f"{chip.name.lower().replace(' ', '-')}-{clock_hz // 1_000_000}"


def _at(chip: Chip, clock_hz: int) -> str:
    return f"{chip.name} at {clock_hz // 1_000_000} MHz"


_ORDER_BUGS: dict[int, Bug] = dict(
    zip(
        _CLOCKS,
        (
            Bug(old="self.a.eq(_ALL_BANKS)", new="self.a.eq(0)"),
            Bug(old="more.eq(wanted.more)", new="more.eq(wanted.more + 1)"),
            Bug(old="column.eq(wanted.address)", new="column.eq(wanted.address + 1)"),
        ),
        strict=True,
    )
)
_SOON_AWAKE = replace(ULX3S, refresh=240_000, power_up=800_000)

PROOFS = (
    *(_times_of(chip, clock_hz) for chip in CHIPS for clock_hz in _CLOCKS),
    *(_order_of(chip, clock_hz) for chip in CHIPS for clock_hz in _CLOCKS),
    Proof(
        name="sdram-start",
        says="Sequencer: power-up, precharge, 8 refreshes and the mode come first, with a "
        "power-up of 20 cycles",
        module=_MODULE,
        contract=lambda code: _start(code, _SOON_AWAKE, _CLOCKS[0]),
        bug=Bug(old="m.If(wake == 0)", new="m.If(wake == 1)"),
        cycles=60,
        fast=True,
    ),
)
