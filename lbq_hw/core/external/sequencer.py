"""Commands of an SDRAM, in their order and at their times."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.external.chips import Chip

__all__ = ["Command", "Sequencer"]

_ALL_BANKS = 1 << 10  # of a precharge
_FIRST_REFRESHES = 8
_FULL_PAGE, _SINGLE_WRITES = 7, 1 << 9  # of the mode register


class Command(enum.Enum, shape=3):
    """A command: row strobe, column strobe and write enable, from bit 0 on, as asserted."""

    NONE = 0b000
    ACTIVATE = 0b001
    READ = 0b010
    REFRESH = 0b011
    TERMINATE = 0b100
    PRECHARGE = 0b101
    WRITE = 0b110
    MODE = 0b111


class Sequencer(wiring.Component):
    """Brings an SDRAM up, refreshes it, and reads and writes at an address that counts on.

    After reset it waits for the power-up time, in whose second half the clock is enabled, then
    precharges all banks, refreshes eight times and sets the mode register: full-page sequential
    reads, single writes, the CAS latency. Data masks are asserted until then.

    A read is a burst of its row: it goes on until the row ends, a refresh is due, or ``reading`` or
    ``free`` ends. Rows stay open until another one or a refresh needs them closed. A refresh falls
    due every ``cycles.refresh`` cycles and comes before anything else.

    Timing. ``read`` is 1 in the cycle in which a word is asked for, which the pins' bus tells the
    chip in the next cycle. A change of row within a burst takes ``rp + rcd`` cycles, a refresh
    ``rp + rfc + rcd`` cycles, in which ``read`` is 0. A write of an open row takes 3 cycles; its
    data are on the bus a cycle before its command, with it, and a cycle after it.

    Parameters
    ----------
    chip : `Chip`
    clock_hz : int
        Of the domain ``sync``.

    Members
    -------
    reading, writing : in
        Words are to be read from ``address`` on; ``data`` are to be written there. At most one of
        them is 1.
    address, data : in
        The address must count on with ``read``.
    free : in
        A word that is asked for now has a place to go.
    quiet : in
        No word is on its way from the chip, so that the data pins may be driven.
    read : out
        A word is asked for, that at ``address``.
    written : out
        The last cycle in which ``writing``, ``address`` and ``data`` of a write are needed.
    clk_en, command, ba, a, dqm, dq_o, dq_oe : out
        For the pins.
    """

    def __init__(self, *, chip: Chip, clock_hz: int):
        self._chip = chip
        self._cycles = chip.cycles(clock_hz)
        masks = chip.data_bits // 8
        super().__init__(
            {
                "reading": In(1),
                "writing": In(1),
                "address": In(chip.address_bits),
                "data": In(chip.data_bits),
                "free": In(1),
                "quiet": In(1),
                "read": Out(1),
                "written": Out(1),
                "clk_en": Out(1),
                "command": Out(Command),
                "ba": Out(chip.bank_bits),
                "a": Out(chip.pin_bits),
                "dqm": Out(masks, init=(1 << masks) - 1),
                "dq_o": Out(chip.data_bits),
                "dq_oe": Out(1),
            }
        )

    @property
    def cycles(self):
        """The chip's timings, as `Cycles`."""
        return self._cycles

    def elaborate(self, _platform):
        m = Module()
        chip, cycles = self._chip, self._cycles
        column, row = self.address[: chip.column_bits], self.address[chip.column_bits :]

        timer = Signal(range(cycles.refresh), init=cycles.refresh - 1)
        due, tick = Signal(), Signal()
        rest = Signal(range(max(cycles.rp, cycles.rcd, cycles.rfc, cycles.mrd)))
        hold = Signal(range(max(cycles.ras, cycles.wr)))  # cycles before the row may be closed
        opened = Signal(len(row))  # with its bank
        unwanted = Signal()  # the open row is to be closed
        crossed = Signal()  # the word before was the last of its row
        wakes = -(-cycles.power_up // cycles.refresh)
        wake = Signal(range(wakes + 1), init=wakes)
        first = Signal(range(_FIRST_REFRESHES + 1), init=_FIRST_REFRESHES)
        ready = Signal()

        m.d.comb += [
            tick.eq(timer == 0),
            unwanted.eq(due | ((self.reading | self.writing) & (row != opened))),
        ]
        m.d.sync += [
            timer.eq(Mux(tick, cycles.refresh - 1, timer - 1)),
            due.eq(due | tick),
            rest.eq(Mux(rest == 0, 0, rest - 1)),
            hold.eq(Mux(hold == 0, 0, hold - 1)),
            self.command.eq(Command.NONE),
            self.dq_oe.eq(0),
            self.dqm.eq(Mux(ready, 0, -1)),
        ]
        with m.If(self.read):
            m.d.sync += crossed.eq(column.all())

        def precharge():
            m.d.sync += [self.command.eq(Command.PRECHARGE), self.a.eq(_ALL_BANKS)]
            m.d.sync += rest.eq(cycles.rp - 1)
            m.next = "CLOSED"

        def refresh():
            m.d.sync += [self.command.eq(Command.REFRESH), rest.eq(cycles.rfc - 1), due.eq(0)]

        def set_mode():
            mode = Const(_FULL_PAGE | cycles.cas << 4 | _SINGLE_WRITES, chip.pin_bits)
            m.d.sync += [self.command.eq(Command.MODE), self.a.eq(mode), self.ba.eq(0)]
            m.d.sync += [rest.eq(cycles.mrd - 1), ready.eq(1)]

        def activate():
            m.d.sync += [self.command.eq(Command.ACTIVATE), Cat(self.ba, self.a).eq(row)]
            m.d.sync += [opened.eq(row), rest.eq(cycles.rcd - 1), hold.eq(cycles.ras - 1)]
            m.next = "OPEN"

        with m.FSM():
            with m.State("POWER_UP"):
                m.d.sync += self.clk_en.eq(wake <= wakes // 2)
                m.d.sync += wake.eq(wake - tick)
                with m.If(wake == 0):
                    precharge()
            with m.State("CLOSED"), m.If(rest == 0):
                with m.If(first != 0):
                    refresh()
                    m.d.sync += first.eq(first - 1)
                with m.Elif(~ready):
                    set_mode()
                with m.Elif(due):
                    refresh()
                with m.Elif(self.reading | self.writing):
                    activate()
            with m.State("OPEN"), m.If(rest == 0):
                m.d.sync += [self.a.eq(column), self.ba.eq(row), self.dq_o.eq(self.data)]
                with m.If(unwanted & (hold == 0)):
                    precharge()
                with m.Elif(~unwanted & self.reading & self.free):
                    m.d.comb += self.read.eq(1)
                    m.d.sync += self.command.eq(Command.READ)
                    m.next = "BURST"
                with m.Elif(~unwanted & self.writing & self.quiet):
                    m.d.comb += self.written.eq(1)
                    m.d.sync += self.dq_oe.eq(1)
                    m.next = "WRITE"
            with m.State("BURST"):
                with m.If((due | crossed) & (hold == 0)):
                    precharge()
                with m.Elif(due | crossed | ~self.free | ~self.reading):
                    m.d.sync += self.command.eq(Command.TERMINATE)
                    m.next = "OPEN"
                with m.Else():
                    m.d.comb += self.read.eq(1)
            with m.State("WRITE"):
                m.d.sync += [self.command.eq(Command.WRITE), self.dq_oe.eq(1)]
                with m.If(hold < cycles.wr - 1):
                    m.d.sync += hold.eq(cycles.wr - 1)
                m.next = "WRITTEN"
            with m.State("WRITTEN"):
                m.d.sync += self.dq_oe.eq(1)
                m.next = "OPEN"
        return m
