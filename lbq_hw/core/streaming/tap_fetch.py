"""Fetches the level words of the pixels in a row of a window."""

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import address_bits
from lbq_hw.core.streaming.finder import lowest
from lbq_hw.core.streaming.layouts import RowItem, WordItem, paths_of
from lbq_hw.streaming.config import StreamConfig

__all__ = ["TapFetch"]


class TapFetch(wiring.Component):
    """Reads all plane words of the pixel behind each set bit of a row, from the left.

    For an identity it reads only the word of the tile. If the last row of a tile has no set bit, it
    offers a word of 0. The words of a pixel without a tap are 0.

    Timing. A row is taken into a register, and stays there for one cycle per word, at least one. A
    word is offered one cycle after its read.

    Members
    -------
    paths : in
    i : stream of `RowItem`
    o : stream of `WordItem`
    levels, taps : read ports
    """

    def __init__(self, config: StreamConfig):
        self._config = c = config
        port = memory.ReadPort.Signature
        tap = address_bits(c.weight_rows) + 1
        super().__init__(
            {
                "paths": In(paths_of(c)),
                "i": In(stream.Signature(RowItem(c))),
                "o": Out(stream.Signature(WordItem(c))),
                "levels": In(port(addr_width=address_bits(c.level_words), shape=c.lanes)),
                "taps": In(port(addr_width=address_bits(c.taps), shape=tap)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        held, held_valid = Signal(RowItem(c)), Signal()
        path = self.paths[held.path]
        plane, word = Signal(address_bits(c.most_planes)), Signal(address_bits(c.tiles))
        offset = Signal((c.tiles * c.most_planes).bit_length())
        one, real, last_bit = lowest(held.bits), held.bits.any(), Signal()
        column = Signal(address_bits(c.window))
        for i in range(c.window):
            with m.If(one[i]):
                m.d.comb += column.eq(i)
        asks, last_plane, last_word, leaves = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            last_bit.eq(held.bits == one),
            asks.eq(held_valid & (real | held.end) & (~self.o.valid | self.o.ready)),
            last_plane.eq(plane == path.planes_last),
            last_word.eq(last_plane & ((word == path.words_last) | path.identity)),
            leaves.eq(Mux(real | held.end, asks & (~real | (last_bit & last_word)), 1)),
            self.i.ready.eq(~held_valid | leaves),
            self.levels.addr.eq(held.base + (held.left + column) * path.pixel + offset),
            self.taps.addr.eq(held.tap + column),
            self.levels.en.eq(asks),
            self.taps.en.eq(asks),
        ]
        begins = Signal()  # with the first word of a pixel
        m.d.comb += begins.eq(self.i.ready | (asks & last_word))
        following = self.i.payload if not c.identities else Signal(RowItem(c))
        with m.If(asks):
            m.d.sync += [plane.eq(plane + 1), offset.eq(offset + 1)]
            with m.If(last_plane):
                m.d.sync += [plane.eq(0), word.eq(word + 1)]
            with m.If(last_word):
                m.d.sync += held.bits.eq(held.bits ^ one)
        if c.identities:
            m.d.comb += following.eq(Mux(self.i.ready, self.i.payload, held))
        own = self.paths[following.path]
        with m.If(begins):
            first = Mux(own.identity, following.tile, 0) if c.identities else 0
            m.d.sync += [
                plane.eq(0),
                word.eq(first),
                offset.eq(first * (own.planes_last + 1) if c.identities else 0),
            ]
        with m.If(self.i.ready):
            m.d.sync += [held_valid.eq(self.i.valid), held.eq(self.i.payload)]
        self._offer(m, asks, {
            "real": real,
            "row": held.tile_row + Mux(path.identity, 0, word * c.lanes),
            "shift": plane + path.exponent,
            "identity": path.identity,
            "end": held.end & (~real | (last_bit & last_word)),
        })  # fmt: skip
        return m

    def _offer(self, m, asks, given):
        """Offer the word that was requested in the previous cycle."""
        item = self.o.payload
        with m.If(asks):
            m.d.sync += self.o.valid.eq(1)
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        kept = {
            name: Signal(len(item[name]) if name != "real" else 1, name=f"asked_{name}")
            for name in given
        }
        with m.If(asks):
            m.d.sync += [kept[name].eq(value) for name, value in given.items()]
        m.d.comb += [
            item.word.eq(Mux(kept["real"] & self.taps.data[0], self.levels.data, 0)),
            item.row.eq(self.taps.data[1:] + kept["row"]),
            item.shift.eq(kept["shift"]),
            item.identity.eq(kept["identity"]),
            item.end.eq(kept["end"]),
        ]
