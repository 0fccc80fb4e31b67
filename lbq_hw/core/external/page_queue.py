"""The queue between an SDRAM and the consumer of its words."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.contracts import checked, must
from lbq_hw.core.fabric.hints import APART

__all__ = ["PageQueue"]


class PageQueue(wiring.Component):
    """A FIFO for the words of two pages. A word is offered only after ``show`` has released it.

    Words are stored when they arrive, and released at times that do not depend on the capture. So
    the consumer sees the same timing whenever the chip answers.

    Timing. A word released in cycle c is offered from cycle c + 3 on, one per cycle, from a
    register, because the output of a block RAM is late. It must be stored in cycle c or before.

    Parameters
    ----------
    bits : int
        Bits of a word.
    words : int
        Words of a page, a power of two.

    Members
    -------
    store : in, with ``valid``, ``word`` and ``last``
        A word, and whether it is the last word of its read.
    show : in
        Release one more word. At most two pages of words may be stored, or released, and not yet
        read.
    o : stream of words
    freed : out
        The last word of a read is taken.
    """

    def __init__(self, *, bits: int, words: int):
        self._bits = bits
        self._words = words
        super().__init__(
            {
                "store": In(data.StructLayout({"valid": 1, "word": bits, "last": 1})),
                "show": In(1),
                "o": Out(stream.Signature(bits)),
                "freed": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.pages = pages = memory.Memory(
            shape=self._bits + 1, depth=2 * self._words, init=[], attrs=APART
        )
        write, read = pages.write_port(), pages.read_port()
        shown = Signal(range(2 * self._words + 1))  # words that are released and not read yet
        read_one, get, move, last = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            move.eq(read_one & (~self.o.valid | self.o.ready)),
            get.eq((shown != 0) & (~read_one | move)),
            write.en.eq(self.store.valid),
            write.data.eq(Cat(self.store.word, self.store.last)),
            read.en.eq(get),
            self.freed.eq(self.o.valid & self.o.ready & last),
        ]
        m.d.sync += [
            shown.eq(shown + self.show - get),
            write.addr.eq(write.addr + write.en),
            read.addr.eq(read.addr + get),
            read_one.eq(get | (read_one & ~move)),
            self.o.valid.eq(move | (self.o.valid & ~self.o.ready)),
        ]
        with m.If(move):
            m.d.sync += Cat(self.o.payload, last).eq(read.data)
        if checked(platform):
            kept = Signal(range(4 * self._words))  # words that are stored and not read yet
            m.d.sync += kept.eq(kept + self.store.valid - get)
            stored = kept + self.store.valid
            must(m, platform, shown + self.show <= stored, "a word is released that is not stored")
            must(m, platform, stored - get <= 2 * self._words, "more than two pages are stored")
        return m
