"""Commands of an SDRAM, in their order and at their times."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.chips import CAS_LATENCY, Chip
from lbq_hw.chips.timing import reader_timing
from lbq_hw.core.external.port import Access
from lbq_hw.core.external.refresh_timer import RefreshTimer

__all__ = ["Command", "Sequencer"]

_ALL_BANKS = 1 << 10  # address bit of a precharge
_FIRST_REFRESHES = 8
_FULL_PAGE, _SINGLE_WRITES = 7, 1 << 9  # in the mode register


class Command(enum.Enum, shape=3):
    """A command: RAS, CAS and WE from bit 0 on; 1 means asserted."""

    NONE = 0b000
    ACTIVATE = 0b001
    READ = 0b010
    REFRESH = 0b011
    PRECHARGE = 0b101
    WRITE = 0b110
    MODE = 0b111


class Sequencer(wiring.Component):
    """Initialises an SDRAM, refreshes it, and executes one access after the other.

    After reset it waits for the power-up time, in whose second half the clock is enabled, then
    precharges all banks, refreshes eight times and sets the mode register: full-page sequential
    reads, single writes, the CAS latency. Data masks are asserted until then.

    From then on it makes a decision whenever all banks are closed: a due refresh comes first, then
    an access. An access opens its row, reads or writes, and closes the row.

    Timing. For a read taken in cycle c, ``read`` is 1 from cycle ``c + rcd`` on, one cycle per word
    without a gap. The next decision is in cycle ``c + max(rcd + words, ras) + rp``. After a refresh
    it is ``rfc`` cycles later, after a write ``max(rcd + wr, ras) + rp`` cycles. A command is on
    the bus in the cycle after its decision. The data of a write are on the bus from the cycle of
    the first command to the cycle after the write command.

    Parameters
    ----------
    chip : `Chip`
    clock_hz : int
        Clock of the domain ``sync``.

    Members
    -------
    access : stream of `Access`, in
    allowed : in
        The access may be taken: for a read, there is room for its words; for a write, no word is in
        flight from the chip.
    read : out
        A word is requested.
    idle : out
        All banks are closed and no refresh is due: an access is taken if ``allowed``.
    phase : out
        As in `RefreshTimer`.
    clk_en, command, ba, a, dqm, dq_o, dq_oe : out
        For the pins.
    """

    def __init__(self, *, chip: Chip, clock_hz: int):
        self._chip = chip
        self._cycles = chip.cycles(clock_hz)
        self._timing = reader_timing(chip, clock_hz)
        masks = chip.data_bits // 8
        super().__init__(
            {
                "access": In(stream.Signature(Access(chip))),
                "allowed": In(1),
                "read": Out(1),
                "idle": Out(1),
                "phase": Out(1),
                "clk_en": Out(1),
                "command": Out(Command),
                "ba": Out(chip.bank_bits),
                "a": Out(chip.pin_bits),
                "dqm": Out(masks, init=(1 << masks) - 1),
                "dq_o": Out(chip.data_bits),
                "dq_oe": Out(1),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        chip, cycles, wanted = self._chip, self._cycles, self.access.payload
        m.submodules.timer = timer = RefreshTimer(self._timing)
        rest = Signal(range(max(cycles.rp, cycles.rcd, cycles.rfc, cycles.mrd)))
        hold = Signal(range(max(cycles.ras, cycles.wr)))  # cycles before the row may be closed
        column, writing = Signal(chip.column_bits), Signal()
        more = Signal(chip.column_bits + 1)  # words to request minus 1: negative means none
        wakes = -(-cycles.power_up // self._timing.interval)
        wake = Signal(range(wakes + 1), init=wakes)
        first = Signal(range(_FIRST_REFRESHES + 1), init=_FIRST_REFRESHES)
        ready = Signal()

        m.d.comb += [timer.counts.eq(ready), self.phase.eq(timer.phase)]
        m.d.sync += [
            rest.eq(Mux(rest == 0, 0, rest - 1)),
            hold.eq(Mux(hold == 0, 0, hold - 1)),
            self.command.eq(Command.NONE),
            self.dqm.eq(Mux(ready, 0, -1)),
        ]
        with m.If(self.read):
            m.d.sync += more.eq(more - 1)

        def precharge():
            m.d.sync += [self.command.eq(Command.PRECHARGE), self.a.eq(_ALL_BANKS)]
            m.d.sync += [self.dq_oe.eq(0), rest.eq(cycles.rp - 1)]
            m.next = "CLOSED"

        def refresh():
            m.d.sync += [self.command.eq(Command.REFRESH), rest.eq(cycles.rfc - 1)]

        def set_mode():
            mode = Const(_FULL_PAGE | CAS_LATENCY << 4 | _SINGLE_WRITES, chip.pin_bits)
            m.d.sync += [self.command.eq(Command.MODE), self.a.eq(mode), self.ba.eq(0)]
            m.d.sync += [rest.eq(cycles.mrd - 1), ready.eq(1)]

        with m.FSM():
            with m.State("POWER_UP"):
                m.d.sync += self.clk_en.eq(wake <= wakes // 2)
                m.d.sync += wake.eq(wake - timer.tick)
                with m.If(wake == 0):
                    precharge()
            with m.State("CLOSED"):
                m.d.comb += self.idle.eq(ready & (rest == 0) & ~timer.due)
                m.d.comb += self.access.ready.eq(self.idle & self.allowed)
                m.d.sync += [Cat(self.ba, self.a).eq(wanted.address[chip.column_bits :])]
                m.d.sync += [column.eq(wanted.address), more.eq(wanted.more)]
                m.d.sync += [writing.eq(wanted.write), self.dq_o.eq(wanted.data)]
                with m.If(rest == 0):
                    with m.If(first != 0):
                        refresh()
                        m.d.sync += first.eq(first - 1)
                    with m.Elif(~ready):
                        set_mode()
                    with m.Elif(timer.due):
                        m.d.comb += timer.made.eq(1)
                        refresh()
                    with m.Elif(self.access.valid & self.allowed):
                        m.d.sync += [self.command.eq(Command.ACTIVATE), rest.eq(cycles.rcd - 1)]
                        m.d.sync += [self.dq_oe.eq(wanted.write), hold.eq(cycles.ras - 1)]
                        m.next = "OPEN"
            with m.State("OPEN"), m.If(rest == 0):
                m.d.sync += self.a.eq(column)
                m.d.comb += self.read.eq(~writing)
                m.d.sync += self.command.eq(Mux(writing, Command.WRITE, Command.READ))
                with m.If(writing & (hold < cycles.wr)):
                    m.d.sync += hold.eq(cycles.wr - 1)
                m.next = "BUSY"
            with m.State("BUSY"):
                m.d.comb += self.read.eq(~writing & ~more[-1])
                with m.If((writing | more[-1]) & (hold == 0)):
                    precharge()
        return m
