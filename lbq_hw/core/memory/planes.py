"""The activation memory: plane words, and per word a flag that tells whether any bit is set."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import address_bits
from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.memory.flags import SpreadFlags, SummaryFlags
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.core.payload import PlaneWrite
from lbq_hw.core.sizes import check_power, check_size

__all__ = ["PlaneMemory", "SpreadPlanes"]


class PlaneMemory(wiring.Component):
    """Memory of plane words with summary flags, written by the granule, one write per cycle.

    The flag of word ``a`` is bit ``a % summary`` of summary word ``a // summary``. A write that
    sets an enabled bit sets the flag. A write of zeros clears the flag if it has ``first``, and
    otherwise keeps it. To rewrite a word, enable each of its granules once, ``first`` with the
    first write; after the last write the flag equals ``word != 0``. All words and flags start as 0.

    Timing. Writes never wait. A write in cycle c is seen by word reads from cycle c + 1 on and by
    summary reads from cycle c + 2 on. Earlier summary reads see the old flags. The word itself must
    not be read in cycle c, because fabrics differ in what such a read returns. The data of a read
    enabled in cycle c are valid from cycle c + 1 until the next enabled read.

    The ports ``host`` and ``word`` share one port of the memory, which saves a second copy of the
    words. The host must read only while ``word`` is idle. Both ports show the data of every read.

    Parameters
    ----------
    words : int
        Number of plane words, a multiple of ``summary``.
    word : int
        Bits of a plane word, a power of two.
    summary : int
        Flags of a summary word, a power of two.
    granule : int
        Bits written under one enable, a power of two that divides ``word``.

    Members
    -------
    i_write : stream of `PlaneWrite`, always ready
    word : read port of ``word`` bits
    summary : read port of ``summary`` bits
    host : read port of ``word`` bits
    """

    FLAGS = SummaryFlags

    def __init__(self, *, words: int, word: int, summary: int, granule: int):
        check_power("word", word, least=8)
        check_power("summary", summary)
        check_power("granule", granule)
        check_size("words", words)
        if granule > word:
            raise ValueError(f"granule must be at most the {word} bits of a word, not {granule!r}")
        if words % summary:
            raise ValueError(f"words must be a multiple of summary ({summary}), not {words!r}")
        self._words = words
        self._granule = granule
        plane_bits = address_bits(words)
        span_bits = address_bits(words // summary)
        write = PlaneWrite(word=word, granule=granule, address_bits=plane_bits)
        words_port = memory.ReadPort.Signature(addr_width=plane_bits, shape=word)
        flags_port = memory.ReadPort.Signature(addr_width=span_bits, shape=summary)
        super().__init__(
            {
                "i_write": In(stream.Signature(write, always_ready=True)),
                "word": Out(words_port),
                "summary": Out(flags_port),
                "host": Out(words_port),
            }
        )

    @property
    def words(self) -> int:
        """Number of plane words."""
        return self._words

    @property
    def granule(self) -> int:
        """Bits written under one enable."""
        return self._granule

    def elaborate(self, platform):
        m = Module()
        self._keep(m)
        write = self.i_write.payload
        enabled = Cat(
            write.data.word_select(i, self._granule) & enable.replicate(self._granule)
            for i, enable in enumerate(write.enable)
        )
        m.submodules.summaries = summaries = self.FLAGS(
            words=self._words, summary=len(self.summary.data)
        )
        wiring.connect(m, wiring.flipped(self.summary), summaries.summary)
        m.d.comb += [
            summaries.valid.eq(self.i_write.valid),
            summaries.addr.eq(write.addr),
            summaries.first.eq(write.first),
            summaries.any_set.eq(enabled.any()),
        ]
        word, host = self.word, self.host
        same = self.i_write.valid & (word.en | host.en)
        same &= write.addr == Mux(host.en, host.addr, word.addr)
        must(m, platform, ~same, "a plane word is read while it is written")
        must(m, platform, ~(word.en & host.en), "the host and the scanner read planes at once")
        return m

    def _keep(self, m):
        """One memory per granule. With partial write enables, a block RAM of the same width would
        hold fewer words.
        """
        write, word, host = self.i_write.payload, self.word, self.host
        read_addr = Signal.like(word.addr)
        m.d.comb += read_addr.eq(Mux(host.en, host.addr, word.addr))
        for i, enable in enumerate(write.enable):
            m.submodules[f"planes_{i}"] = column = memory.Memory(
                shape=self._granule, depth=self._words, init=[], attrs=APART
            )
            column_write, column_read = column.write_port(), column.read_port()
            m.d.comb += [
                column_write.addr.eq(write.addr),
                column_write.data.eq(write.data.word_select(i, self._granule)),
                column_write.en.eq(enable & self.i_write.valid),
                column_read.addr.eq(read_addr),
                column_read.en.eq(word.en | host.en),
                word.data.word_select(i, self._granule).eq(column_read.data),
                host.data.word_select(i, self._granule).eq(column_read.data),
            ]


class SpreadPlanes(PlaneMemory):
    """As `PlaneMemory`, with its words in a `SpreadMemory`, because they fill a good part of the
    chip.

    Timing. The data of a read enabled in cycle c are valid only in cycle
    ``c + SpreadMemory.LATENCY``. Summary reads see a write in cycle c from cycle c + 3 on.
    """

    FLAGS = SpreadFlags

    def _keep(self, m):
        write, word, host = self.i_write.payload, self.word, self.host
        m.submodules.planes = planes = SpreadMemory(
            width=len(write.data), depth=self._words, granule=self._granule
        )
        m.d.comb += [
            planes.write.addr.eq(write.addr),
            planes.write.data.eq(write.data),
            planes.write.en.eq(write.enable & self.i_write.valid.replicate(len(write.enable))),
            planes.read.addr.eq(Mux(host.en, host.addr, word.addr)),
            planes.read.en.eq(word.en | host.en),
            word.data.eq(planes.read.data),
            host.data.eq(planes.read.data),
        ]
