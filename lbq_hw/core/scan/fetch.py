"""The scanner's stages that read memory: first flags, then words. `Scanner` puts a queue behind
each.

Both stages leave read data in the memory's output register until the next stage takes them. An
empty word or request is dropped, but only while the queue behind has room. Otherwise the memory's
read enable would depend on all bits of a word, which arrive late in the cycle.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from lbq_hw.core.payload import ScanKind, ScanRequest
from lbq_hw.core.scan.bits import at_least, encode, take_lowest
from lbq_hw.core.stream.stage import Stage

__all__ = ["FlagFetch", "Word", "WordFetch"]


class Word(data.StructLayout):
    """A word to turn into events: one event per set bit, or one for the lanes of an identity.

    `end` marks the last word of a step. `many` is set if the word makes several events; the
    doublings from a last word's exponent down to 0 count as events. A word with `end` and without
    `many` therefore has exponent 0, and exponent 1 is free to mark a word without bits, which only
    ends the step. `lo` and `identity` exist only if there are `identities`.

    `counts` names members that count set bits: ``("count",)`` counts all bits; `PAIRS` counts even
    and odd bits separately, for cores where one event takes an even and an odd bit.
    """

    PAIRS = ("even", "odd")

    def __init__(
        self,
        *,
        word: int,
        row_bits: int,
        exponent_bits: int,
        identities: bool,
        counts: tuple[str, ...] = (),
    ):
        self.counts = counts
        lanes = {"lo": ceil_log2(word), "identity": 1} if identities else {}
        counted = dict.fromkeys(counts, bits_for(word // max(1, len(counts))))
        common = {"bits": word, "row": row_bits, "exponent": exponent_bits}
        super().__init__(common | {"end": 1, "many": 1} | lanes | counted)

    @property
    def identities(self) -> bool:
        return "identity" in self.members


class FlagFetch(wiring.Component):
    """Reads the summary word of each request, one per cycle, and drops requests without a flag.

    Other requests are passed on, with ``want`` reduced to the words that are not zero. A request
    without a flag that ends its step becomes an END instead.

    Timing. A request is offered ``1 + registers`` cycles after it was taken. A request that is
    dropped sets ``empty`` in that cycle, or later if ``o`` is not ready.

    Parameters
    ----------
    registers : int
        Registers between the flag memory and this block's logic.
    """

    def __init__(
        self, *, request: ScanRequest, port: memory.ReadPort.Signature, registers: int = 0
    ):
        self._registers = registers
        super().__init__(
            {
                "i": In(stream.Signature(request)),
                "o": Out(stream.Signature(request)),
                "summary": In(port),
                "empty": Out(1),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        asked = Stage("asked", self.i.payload.shape())
        flagged = Stage("flagged", self.i.payload.shape())
        m.d.comb += [
            asked.valid.eq(self.i.valid),
            asked.payload.eq(self.i.payload),
            self.i.ready.eq(asked.free),
            self.summary.addr.eq(self.i.payload.span),
            self.summary.en.eq(asked.free & self.i.valid & (self.i.payload.kind != ScanKind.END)),
        ]
        read = asked.later(m, "read")
        m.d.comb += [flagged.valid.eq(read.valid), flagged.payload.eq(read.payload)]
        m.d.comb += flagged.payload.want.eq(read.payload.want & self.summary.data)
        m.d.comb += read.free.eq(flagged.free)
        for register in range(self._registers):
            flagged = flagged.later(m, f"kept_{register}")

        empty, end = Signal(), flagged.payload.kind == ScanKind.END
        m.d.comb += [
            empty.eq(~end & ~flagged.payload.want.any()),
            self.empty.eq(flagged.valid & empty & self.o.ready),
            self.o.payload.eq(flagged.payload),
            self.o.valid.eq(flagged.valid & (flagged.payload.end | ~empty)),
            flagged.free.eq(self.o.ready),
        ]
        with m.If(empty):
            m.d.comb += self.o.payload.kind.eq(ScanKind.END)
        return m


class WordFetch(wiring.Component):
    """Reads the wanted words of each request, one per cycle, and drops words with no bit in range.

    A request is taken in the cycle in which its last word is chosen. The last word of a step is
    never dropped.

    Timing. A word is read in the cycle in which it is chosen, and offered two cycles later, as is
    an END.

    Members
    -------
    i : stream of `ScanRequest`
    o : stream of `Word`
    word : the read port of the words, flipped
    """

    def __init__(self, *, request: ScanRequest, entry: Word, port: memory.ReadPort.Signature):
        self._identities = entry.identities
        super().__init__(
            {"i": In(stream.Signature(request)), "word": In(port)} | self._offered(entry)
        )

    def _offered(self, entry: Word):
        """Members for the output of words."""
        return {"o": Out(stream.Signature(entry))}

    def elaborate(self, _platform):
        m = Module()
        chosen = self._choose(m)
        read = chosen.later(m, "read")
        self._ask(m, chosen.payload, chosen.valid & chosen.free)
        held, valid = self._hold(m, read, self._in_range(*self._cuts(read.payload)))
        m.d.comb += read.free.eq(~valid | self.o.ready)
        made, there = self._make(m, held, held.bits.any(), at_least(m, 2, held.bits))
        m.d.comb += [self.o.payload.eq(made), self.o.valid.eq(valid & there)]
        return m

    def _ask(self, m, asked, goes):
        """Read the word that was chosen."""
        m.d.comb += [
            self.word.addr.eq(Cat(asked.index, asked.span)),
            self.word.en.eq(goes & (asked.kind != ScanKind.END)),
        ]

    def _choose(self, m):
        """Choose the next word of the request at the input."""
        request = self.i.payload
        words = len(request.want)
        members = {name: field.shape for name, field in request.shape() if name != "want"}
        chosen = Stage("chosen", data.StructLayout(members | {"index": ceil_log2(words)}))
        seen, want = Signal(words), Signal(words)
        lowest, rest = Signal(words), Signal(words)
        last = Signal()
        m.d.comb += [
            want.eq(request.want & ~seen),
            Cat(lowest, rest).eq(Cat(*take_lowest(want))),
            chosen.valid.eq(self.i.valid),
            chosen.payload.index.eq(encode(lowest)),
            last.eq((request.kind == ScanKind.END) | ~at_least(m, 2, want)),
            *(chosen.payload[name].eq(request[name]) for name in members),
            chosen.payload.end.eq(request.end & last),
            self.i.ready.eq(chosen.free & last),
        ]
        with m.If(chosen.valid & chosen.free):
            m.d.sync += seen.eq(Mux(self.i.ready, 0, request.want & ~rest))
        return chosen

    def _cuts(self, asked):
        """Whether bits of a word are wanted, and how many are cut off at its low and high end."""
        everywhere = asked.kind == ScanKind.IDENTITY if self._identities else Const(0)
        cut_low = everywhere | (asked.lo_en & (asked.lo_at == asked.index))
        cut_high = everywhere | (asked.hi_en & (asked.hi_at == asked.index))
        here = asked.kind != ScanKind.END
        return here, Mux(cut_low, asked.lo, 0), Mux(cut_high, ~asked.hi, 0)

    def _in_range(self, here, low, high):
        """Mask of the wanted bits of a word."""
        # Shifted ones are cheaper than a comparison per bit, which would need a carry chain each.
        ones = ~Const(0, len(self.word.data))
        return (ones << low)[: len(ones)] & (ones >> high) & here.replicate(len(ones))

    def _hold(self, m, read, in_range):
        """Register behind the memory: the masked word, and whether it is valid."""
        asked, held, valid = read.payload, Signal(self.o.payload.shape()), Signal()
        identity = asked.kind == ScanKind.IDENTITY if self._identities else Const(0)
        offset = Signal.like(asked.row)
        with m.If(~identity):
            m.d.comb += offset.eq(asked.index << ceil_log2(len(held.bits)))
        with m.If(read.free):
            m.d.sync += [
                valid.eq(read.valid),
                held.bits.eq(self.word.data & in_range),
                held.row.eq(asked.row + offset),
                held.exponent.eq(asked.exponent),
                held.end.eq(asked.end),
            ]
            if self._identities:
                m.d.sync += [held.lo.eq(asked.lo), held.identity.eq(identity)]
        return held, valid

    def _make(self, m, held, any_bit, many_bits):
        """The word to offer, and whether it makes any event."""
        made = Signal.like(held, name="made")
        several = ~held.identity & many_bits if self._identities else many_bits
        m.d.comb += [
            made.eq(held),
            made.many.eq(several | (any_bit & held.end & held.exponent.any())),
        ]
        with m.If(~any_bit):
            m.d.comb += made.exponent.eq(1)
        return made, any_bit | held.end
