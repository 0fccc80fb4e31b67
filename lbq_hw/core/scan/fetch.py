"""The stages of the scanner that read: flags, then words. `Scanner` puts queues behind them.

Both leave what they read in the memory's output register until the next stage can take it. What is
empty is dropped, but only while the queue behind has room: otherwise the enable of the memory would
depend on all bits of a word, which are known late in the cycle.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from lbq_hw.core.payload import ScanKind, ScanRequest
from lbq_hw.core.scan.bits import at_least, count_byte, encode, take_lowest

__all__ = ["FlagFetch", "Word", "WordFetch"]


class Word(data.StructLayout):
    """A word with events to make: set bits of a row, or the lanes of an identity.

    With `end` it is the last of its step. `many` tells that there are several events to make, among
    them the doublings from the exponent of a last word down to 0. So one with `end` and without
    `many` has exponent 0: where the lowest bit of its exponent is set, it has no bits, and is an
    end alone. `lo` and `identity` are there if there are `identities`; `count`, the number of set
    bits, if these are `counted`. With `pairs`, one event is for an even and an odd bit, and these
    are counted apart, as `even` and `odd`.
    """

    def __init__(
        self,
        *,
        word: int,
        row_bits: int,
        exponent_bits: int,
        identities: bool,
        counted: bool = False,
        pairs: bool = False,
    ):
        lanes = {"lo": ceil_log2(word), "identity": 1} if identities else {}
        if pairs:
            lanes |= {"even": bits_for(word // 2), "odd": bits_for(word // 2)}
        elif counted:
            lanes |= {"count": bits_for(word)}
        common = {"bits": word, "row": row_bits, "exponent": exponent_bits}
        super().__init__(common | {"end": 1, "many": 1} | lanes)

    @property
    def identities(self) -> bool:
        return "identity" in self.members

    @property
    def counts(self) -> tuple[str, ...]:
        """Members that count bits: none, one, or one for even bits and one for odd ones."""
        return tuple(name for name in ("count", "even", "odd") if name in self.members)

    @property
    def pairs(self) -> bool:
        return "odd" in self.members


class FlagFetch(wiring.Component):
    """Reads the summary word of each request, one per cycle, and drops requests without a flag.

    Other requests are passed on, with ``want`` reduced to the words that are not zero. One that
    ends its step becomes an END instead of being dropped.

    Timing. A request is offered in the cycle after it was taken, or two cycles after it, if
    ``late``. One without a flag sets ``empty`` in that cycle, or later if ``o`` is not ready.

    Parameters
    ----------
    late : bool
        A register takes the flags as they leave the memory.
    """

    def __init__(
        self, *, request: ScanRequest, port: memory.ReadPort.Signature, late: bool = False
    ):
        self._late = late
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
        asked = _Stage("asked", self.i.payload.shape())
        flagged = _Stage("flagged", self.i.payload.shape())
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
        if self._late:
            flagged = flagged.later(m, "kept")

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


class _Stage:
    """A place in a pipeline: what is there, and whether it moves on or there is nothing to move."""

    def __init__(self, name, layout):
        self.valid = Signal(name=f"{name}_valid")
        self.payload = Signal(layout, name=name)
        self.free = Signal(name=f"{name}_free")

    def later(self, m, name):
        """The next place, behind a register."""
        following = _Stage(name, self.payload.shape())
        m.d.comb += self.free.eq(~following.valid | following.free)
        with m.If(self.free):
            m.d.sync += [following.valid.eq(self.valid), following.payload.eq(self.payload)]
        return following

    def without_waiting(self, m, cycles):
        """The next places, each behind a register: all that moves on reaches one in each cycle."""
        places, moves, payload = [], self.valid & self.free, self.payload
        for cycle in range(cycles):
            place = _Stage(f"on_its_way_{cycle}", payload.shape())
            m.d.sync += [place.valid.eq(moves), place.payload.eq(payload)]
            moves, payload = place.valid, place.payload
            places.append(place)
        return places


class WordFetch(wiring.Component):
    """Reads the wanted words of each request, one per cycle, and drops those with no bit in range.

    A request is taken in the cycle in which the last of its words is chosen. The last word of a
    step is not dropped.

    Timing. A word is read in the cycle in which it is chosen, and offered two cycles later, as is
    an END.

    With a memory that is ``far``, its address comes from a register, so that a word is read a cycle
    after it was chosen, and offered ``far`` + 3 cycles after that, as is an END. Nothing waits on
    that way: words are chosen only if there is ``room`` for all that are on it.

    Parameters
    ----------
    far : int
        Cycles of a read, if the memory fills a good part of the chip; else 0.
    room : int
        With ``far``: words that whoever takes them has room for.

    Members
    -------
    i : stream of `ScanRequest`
    o : stream of `Word`, with ``far`` always ready
    word : the read port of the words, seen from the other side
    left : in, with ``far``
        One of the words that were taken leaves, and makes room from the next cycle but one on.
    """

    def __init__(
        self,
        *,
        request: ScanRequest,
        entry: Word,
        port: memory.ReadPort.Signature,
        far: int = 0,
        room: int = 0,
    ):
        self._far, self._room = far, room
        self._identities = entry.identities
        super().__init__(
            {
                "i": In(stream.Signature(request)),
                "o": Out(stream.Signature(entry, always_ready=far > 0)),
                "word": In(port),
            }
            | ({"left": In(1)} if far else {})
        )

    def elaborate(self, _platform):
        m = Module()
        chosen = self._choose(m)
        if self._far:
            asked, *_, before, _, read = chosen.without_waiting(m, 1 + self._far)
            goes, in_range = asked.valid, Signal(len(self.word.data), reset_less=True)
            cuts = self._cuts(before.payload)
            registers = [Signal.like(cut, reset_less=True) for cut in cuts]
            m.d.sync += [register.eq(cut) for register, cut in zip(registers, cuts, strict=True)]
            m.d.sync += in_range.eq(self._in_range(*registers))
        else:
            asked, read = chosen, chosen.later(m, "read")
            goes, in_range = asked.valid & asked.free, self._in_range(*self._cuts(read.payload))
        m.d.comb += [
            self.word.addr.eq(Cat(asked.payload.index, asked.payload.span)),
            self.word.en.eq(goes & (asked.payload.kind != ScanKind.END)),
        ]
        self._offer(m, chosen, read, in_range)
        return m

    def _choose(self, m):
        """The next word of the request that is offered."""
        request = self.i.payload
        words = len(request.want)
        members = {name: field.shape for name, field in request.shape() if name != "want"}
        chosen = _Stage("chosen", data.StructLayout(members | {"index": ceil_log2(words)}))
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
        """Whether bits of a word are wanted, and how many at its low and high end are not."""
        everywhere = asked.kind == ScanKind.IDENTITY if self._identities else Const(0)
        if "stacked" in asked.shape().members:
            everywhere |= asked.stacked
        cut_low = everywhere | (asked.lo_en & (asked.lo_at == asked.index))
        cut_high = everywhere | (asked.hi_en & (asked.hi_at == asked.index))
        here = asked.kind != ScanKind.END
        return here, Mux(cut_low, asked.lo, 0), Mux(cut_high, ~asked.hi, 0)

    def _in_range(self, here, low, high):
        """The bits of a word that are wanted."""
        # Ones are shifted, since a comparison per bit would become a carry chain per bit.
        ones = ~Const(0, len(self.word.data))
        return (ones << low)[: len(ones)] & (ones >> high) & here.replicate(len(ones))

    def _offer(self, m, chosen, read, in_range):
        """What was read is held for a cycle, and offered if there is something in it."""
        asked, held = read.payload, Signal(self.o.payload.shape())
        valid = Signal()
        identity = asked.kind == ScanKind.IDENTITY if self._identities else Const(0)
        offset = Signal.like(asked.row)
        with m.If(~identity):
            stacks = "stacked" in asked.shape().members
            m.d.comb += offset.eq(
                asked.index << (asked.inc if stacks else ceil_log2(len(held.bits)))
            )
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

        m.d.comb += read.free.eq(~valid | self.o.ready)
        if self._far:
            there, bits_many, counts = self._count_early(m, held.bits)
            offered, offered_valid = Signal.like(held, reset_less=True), Signal()
            m.d.sync += [offered.eq(held), offered_valid.eq(valid)]
            held, valid = offered, offered_valid
        else:
            there, bits_many = held.bits.any(), at_least(m, 2, held.bits)
        several = ~held.identity & bits_many if self._identities else bits_many
        offers = m.d.sync if self._far else m.d.comb
        offers += [
            self.o.payload.eq(held),
            self.o.payload.many.eq(several | (there & held.end & held.exponent.any())),
            self.o.valid.eq(valid & (there | held.end)),
        ]
        with m.If(~there):
            offers += self.o.payload.exponent.eq(1)
        if self._far:
            names = self.o.payload.shape().counts
            m.d.sync += [
                self.o.payload[name].eq(count) for name, count in zip(names, counts, strict=True)
            ]
            owed, dropped, left = Signal(range(self._room + 1)), Signal(), Signal()
            m.d.sync += [dropped.eq(valid & ~(there | held.end)), left.eq(self.left)]
            m.d.sync += owed.eq(owed + (chosen.valid & chosen.free) - left - dropped)
            m.d.comb += chosen.free.eq(owed != self._room)

    def _count_early(self, m, bits):
        """Whether there is a bit, whether there are several events, and the counts, a cycle later:
        of all bits, or with pairs of the even and of the odd ones.
        """
        if not self.o.payload.shape().pairs:
            there, several, count = self._count_of(m, bits, "")
            return there, several, [count]
        even, even_many, evens = self._count_of(m, bits[::2], "_even")
        odd, odd_many, odds = self._count_of(m, bits[1::2], "_odd")
        return even | odd, even_many | odd_many, [evens, odds]

    def _count_of(self, m, bits, name):
        """Whether there is a bit, whether there are several, and how many, a cycle later."""
        parts = [bits[i : i + 8] for i in range(0, len(bits), 8)]
        one, two = (Signal(len(parts), name=f"at_least_{n}{name}", reset_less=True) for n in (1, 2))
        m.d.sync += one.eq(Cat(part.any() for part in parts))
        m.d.sync += two.eq(Cat(at_least(m, 2, part) for part in parts))
        counts = [Signal(4, name=f"count{name}_{i}", reset_less=True) for i in range(len(parts))]
        m.d.sync += [count.eq(count_byte(part)) for count, part in zip(counts, parts, strict=True)]
        while len(counts) > 1:
            counts = [a + b for a, b in zip(counts[::2], counts[1::2], strict=True)]
        return one.any(), two.any() | at_least(m, 2, one), counts[0]
