"""Reads words of a plane memory that fills a good part of the chip."""

from amaranth import Cat, Module, Signal
from amaranth.lib import memory, stream
from amaranth.lib.wiring import In, Out

from lbq_hw.core.payload import ScanRequest
from lbq_hw.core.scan.bits import at_least, count_byte
from lbq_hw.core.scan.fetch import Word, WordFetch
from lbq_hw.core.stream.credit import Credit

__all__ = ["SpreadWordFetch"]


class SpreadWordFetch(WordFetch):
    """As `WordFetch`, for a memory whose reads take several cycles and cannot be stalled.

    A word is chosen only while the receiver has ``room`` for it and for all words in flight. The
    set bits of each word are counted.

    Timing. The address comes from a register, so that a word is read a cycle after it was chosen.
    A word, or an END, is offered ``latency + 3`` cycles after that.

    Parameters
    ----------
    latency : int
        Cycles of a read.
    room : int
        Words that the receiver has room for.

    Members
    -------
    o : stream of `Word`, always ready
    left : in
        A word leaves the receiver; its room is available again two cycles later.
    """

    def __init__(
        self,
        *,
        request: ScanRequest,
        entry: Word,
        port: memory.ReadPort.Signature,
        latency: int,
        room: int,
    ):
        self._latency, self._room = latency, room
        super().__init__(request=request, entry=entry, port=port)

    def _offered(self, entry: Word):
        return {"o": Out(stream.Signature(entry, always_ready=True)), "left": In(1)}

    def elaborate(self, _platform):
        m = Module()
        m.submodules.credit = credit = Credit(room=self._room, returns=2)
        chosen = self._choose(m)
        asked, *_, before, _, read = chosen.without_waiting(m, 1 + self._latency)
        self._ask(m, asked.payload, asked.valid)
        cuts = self._cuts(before.payload)
        registers = [Signal.like(cut, reset_less=True) for cut in cuts]
        in_range = Signal(len(self.word.data), reset_less=True)
        m.d.sync += [register.eq(cut) for register, cut in zip(registers, cuts, strict=True)]
        m.d.sync += in_range.eq(self._in_range(*registers))
        m.d.comb += read.free.eq(1)
        held, valid = self._hold(m, read, in_range)
        any_bit, many_bits, counts = self._count(m, held.bits)
        kept, kept_valid = Signal.like(held, reset_less=True), Signal()
        m.d.sync += [kept.eq(held), kept_valid.eq(valid)]
        made, there = self._make(m, kept, any_bit, many_bits)
        dropped, left = Signal(), Signal()
        m.d.sync += [
            self.o.payload.eq(made),
            self.o.valid.eq(kept_valid & there),
            dropped.eq(kept_valid & ~there),
            left.eq(self.left),
        ]
        for name, count in zip(kept.shape().counts, counts, strict=True):
            m.d.sync += self.o.payload[name].eq(count)
        m.d.comb += [
            credit.sent.eq(chosen.valid & chosen.free),
            credit.returned.eq(Cat(left, dropped)),
            chosen.free.eq(credit.available),
        ]
        return m

    def _count(self, m, bits):
        """A cycle later: whether any bit is set, whether the word makes several events, and the
        counts of all bits, or of even and of odd bits.
        """
        names = self.o.payload.shape().counts
        counted = [self._count_of(m, bits[i :: len(names)], name) for i, name in enumerate(names)]
        found, many, counts = zip(*counted, strict=True)
        return Cat(found).any(), Cat(many).any(), counts

    def _count_of(self, m, bits, name):
        """A cycle later: whether any bit is set, whether several are, and how many."""
        parts = [bits[i : i + 8] for i in range(0, len(bits), 8)]
        one, two = (
            Signal(len(parts), name=f"at_least_{n}_{name}", reset_less=True) for n in (1, 2)
        )
        m.d.sync += one.eq(Cat(part.any() for part in parts))
        m.d.sync += two.eq(Cat(at_least(m, 2, part) for part in parts))
        counts = [Signal(4, name=f"{name}_{i}", reset_less=True) for i in range(len(parts))]
        m.d.sync += [count.eq(count_byte(part)) for count, part in zip(counts, parts, strict=True)]
        while len(counts) > 1:
            counts = [a + b for a, b in zip(counts[::2], counts[1::2], strict=True)]
        return one.any(), two.any() | at_least(m, 2, one), counts[0]
