"""Stores the levels of earlier frames, and offers them together with the levels of a new frame."""

from amaranth import Module, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.audio.filter_bank import BANDS, LEVELS
from lbq_hw.audio.memory import GAP, ROWS
from lbq_hw.core.audio.loudness import BandLevel

__all__ = ["History", "PlacedLevel"]

_FRAMES = GAP * ROWS
_EACH = len(BANDS)


class PlacedLevel(data.StructLayout):
    """A level at its place in the network's input, with a mark on the last level of a step."""

    def __init__(self):
        super().__init__(
            {"row": range(ROWS), "column": range(_EACH), "level": range(LEVELS + 1), "last": 1}
        )


class History(wiring.Component):
    """Takes the levels of a frame, and then offers the levels of all rows, row by row.

    The result equals `lbq_hw.audio.remembered`: row k is `GAP` * k frames old. Frames are kept in a
    ring buffer, whose number of frames and of bands are powers of two.

    Timing. One level is taken per cycle, and one is offered per two cycles. A recording begins with
    a reset, after which the ring buffer is cleared in one cycle per level. No port depends
    combinationally on another.

    Members
    -------
    i : stream of `BandLevel`
    o : stream of `PlacedLevel`
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(BandLevel())),
                "o": Out(stream.Signature(PlacedLevel())),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        m.submodules.levels = levels = memory.Memory(
            shape=range(LEVELS + 1), depth=_FRAMES * _EACH, init=[]
        )
        write, read = levels.write_port(), levels.read_port()
        newest = Signal(range(_FRAMES))
        at = Signal(range(ROWS * _EACH))
        row, column = at[_EACH.bit_length() - 1 :], at[: _EACH.bit_length() - 1]
        forgotten = Signal(range(_FRAMES * _EACH))
        placed = self.o.payload
        m.d.comb += [
            write.addr.eq(newest * _EACH + self.i.payload.band),
            write.data.eq(self.i.payload.level),
            read.addr.eq(((newest - row * GAP) % _FRAMES) * _EACH + column),
            placed.row.eq(row),
            placed.column.eq(column),
            placed.level.eq(read.data),
            placed.last.eq(at == ROWS * _EACH - 1),
        ]
        with m.FSM():
            with m.State("FORGET"):
                m.d.comb += [write.en.eq(1), write.addr.eq(forgotten), write.data.eq(0)]
                m.d.sync += forgotten.eq(forgotten + 1)
                with m.If(forgotten == _FRAMES * _EACH - 1):
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += [self.i.ready.eq(1), write.en.eq(self.i.valid)]
                with m.If(self.i.valid & self.i.payload.last):
                    m.next = "READ"
            with m.State("READ"):
                m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += at.eq(at + 1)
                    m.next = "READ"
                    with m.If(placed.last):
                        m.d.sync += newest.eq(newest + 1)
                        m.next = "TAKE"
        return m
