"""Flags that tell which plane words are not zero."""

from amaranth import Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.config import address_bits
from lbq_hw.core.fabric.hints import APART

__all__ = ["SpreadFlags", "SummaryFlags"]


class SummaryFlags(wiring.Component):
    """The flags of plane words, `summary` of them in one summary word.

    The flag of word ``a`` is bit ``a % summary`` of summary word ``a // summary``. A mark with
    ``any_set`` sets the flag; a mark without it clears the flag if it has ``first``, and otherwise
    keeps it. All flags start as 0.

    Timing. Marks never wait. A mark in cycle c is seen by reads from cycle c + 2 on; earlier reads
    see the old flags. The data of a read enabled in cycle c are valid from cycle c + 1 until the
    next enabled read.

    Parameters
    ----------
    words, summary : int
        As in `PlaneMemory`.

    Members
    -------
    valid, addr, first, any_set : in
        A mark: an update of one word's flag.
    summary : read port of a summary word
    """

    def __init__(self, *, words: int, summary: int):
        self._spans = words // summary
        span_bits = address_bits(self._spans)
        super().__init__(
            {
                "valid": In(1),
                "addr": In(address_bits(words)),
                "first": In(1),
                "any_set": In(1),
                "summary": Out(memory.ReadPort.Signature(addr_width=span_bits, shape=summary)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        flags = len(self.summary.data)
        m.submodules.flags = scanned = memory.Memory(shape=flags, depth=self._spans, init=[])
        flag_read = scanned.read_port()
        m.d.comb += [
            flag_read.addr.eq(self.summary.addr),
            flag_read.en.eq(self.summary.en),
            self.summary.data.eq(flag_read.data),
        ]
        # A second copy serves the read-modify-write, so that the scanner has a read port of its
        # own. A read during a write of the same word, which `APART` leaves undefined, is forwarded.
        m.submodules.flags_copy = copy = memory.Memory(
            shape=flags, depth=self._spans, init=[], attrs=APART
        )
        index_bits, old_read = ceil_log2(flags), copy.read_port()
        m.d.comb += [
            old_read.addr.eq(self.addr[index_bits:]),
            old_read.en.eq(self.valid),
        ]
        new_mark = Signal(
            data.StructLayout(
                {"span": len(old_read.addr), "index": index_bits, "first": 1, "any_set": 1}
            )
        )
        m.d.comb += [
            new_mark.span.eq(old_read.addr),
            new_mark.index.eq(self.addr[:index_bits]),
            new_mark.first.eq(self.first),
            new_mark.any_set.eq(self.any_set),
        ]
        new_flags = Signal(flags)
        merge, mark, old = self._marks(m, new_mark, old_read.data, new_flags)
        own_flag = Signal(flags)
        m.d.comb += [
            own_flag.eq(1 << mark.index),
            new_flags.eq(old & ~(own_flag & mark.first.replicate(flags))),
        ]
        with m.If(mark.any_set):
            m.d.comb += new_flags.eq(old | own_flag)
        for port in (scanned.write_port(), copy.write_port()):
            m.d.comb += [port.addr.eq(mark.span), port.data.eq(new_flags), port.en.eq(merge)]
        return m

    def _marks(self, m, new_mark, read, new_flags):
        """A mark reads its summary word in the first cycle, and is merged into it in the second.

        Returns whether there is a mark in its second cycle, the mark, and the flags before it.
        """
        merge, forward, mark = Signal(), Signal(), Signal(new_mark.shape())
        last, old = Signal.like(new_flags), Signal.like(new_flags)
        m.d.comb += old.eq(read)
        with m.If(forward):
            m.d.comb += old.eq(last)
        m.d.sync += merge.eq(self.valid)
        with m.If(self.valid):
            # While the previous mark is in its second cycle, this read misses what it stores.
            m.d.sync += [mark.eq(new_mark), forward.eq(merge & (mark.span == new_mark.span))]
        with m.If(merge):
            m.d.sync += last.eq(new_flags)
        return merge, mark, old


class SpreadFlags(SummaryFlags):
    """As `SummaryFlags`, with an output register behind the flag memory.

    Timing. A mark in cycle c is seen by reads from cycle c + 3 on.
    """

    def _marks(self, m, new_mark, read, new_flags):
        """As in `SummaryFlags`; here a read misses two earlier marks, which are forwarded."""
        comes, merge, done = Signal(), Signal(), Signal()
        coming, mark, before = (Signal(new_mark.shape(), name=name, reset_less=True)
                                for name in ("coming", "mark", "before"))  # fmt: skip
        kept, old, last, older = (Signal.like(new_flags, name=name, reset_less=True)
                                  for name in ("kept", "old", "last", "older"))  # fmt: skip
        forward = Signal(2)
        m.d.comb += old.eq(kept)
        with m.If(forward[0]):
            m.d.comb += old.eq(last)
        with m.Elif(forward[1]):
            m.d.comb += old.eq(older)
        m.d.sync += [
            comes.eq(self.valid),
            merge.eq(comes),
            done.eq(merge),
            coming.eq(new_mark),
            mark.eq(coming),
            before.eq(mark),
            kept.eq(read),
            last.eq(new_flags),
            older.eq(last),
            forward[0].eq(merge & (mark.span == coming.span)),
            forward[1].eq(done & (before.span == coming.span)),
        ]
        return merge, mark, old
