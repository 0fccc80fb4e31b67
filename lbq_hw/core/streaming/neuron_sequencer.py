"""Sends the sums of each tile to the neuron units, group by group."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import address_bits
from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.streaming.layouts import Beat, Mark, layer_of
from lbq_hw.streaming.config import StreamConfig

__all__ = ["NeuronSequencer"]


class NeuronSequencer(wiring.Component):
    """Makes the beats of every visit: the groups of each tile one after the other, then empty beats
    until the tile has as many beats as the layer requires, so that there is time to write its
    planes.

    Rows come in ascending order, so the addresses of a row's membranes, levels and stamps follow by
    additions; only the column is multiplied. The stamp is read before the first tile, and written
    after the last.

    Timing. Taking the sums of a tile takes one cycle; from the next cycle on, one beat is offered
    per cycle. A mark without a visit makes one beat, offered in the first cycle in which the mark
    is valid. A mark is taken with its last beat.

    Members
    -------
    start : in
        A layer begins.
    layer : in
    now : in
        Number of the step, in the format of stamps.
    clear, clear_addr : in
        Clear a stamp, while nothing runs.
    i_mark : stream of `Mark`
    i_sums : stream of an array of sums
    o : stream of `Beat`
    o_sums : out
        Sums of the beat's group.
    param : out
        Word of the beat's parameters.
    """

    def __init__(self, config: StreamConfig):
        self._config = c = config
        sums = data.ArrayLayout(signed(c.acc_bits), c.lanes)
        super().__init__(
            {
                "start": In(1),
                "layer": In(layer_of(c)),
                "now": In(c.stamp_bits),
                "clear": In(1),
                "clear_addr": In(address_bits(max(1, c.positions))),
                "i_mark": In(stream.Signature(Mark(c))),
                "i_sums": In(stream.Signature(sums)),
                "o": Out(stream.Signature(Beat(c))),
                "o_sums": Out(data.ArrayLayout(signed(c.acc_bits), c.units)),
                "param": Out(address_bits(c.param_words)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, layer, mark, beat = self._config, self.layer, self.i_mark.payload, self.o.payload
        rows = {
            "membrane": Signal(address_bits(c.membrane_words), name="membrane_row"),
            "level": Signal(address_bits(c.level_words), name="level_row"),
        }
        membrane, level = Signal.like(rows["membrane"]), Signal.like(rows["level"])
        kept = Signal(c.lanes * c.acc_bits)
        tile, number = Signal(address_bits(c.tiles)), Signal(address_bits(max(c.groups, c.planes)))
        last_tile, last_group, last_beat, taken = Signal(), Signal(8), Signal(), Signal()
        m.d.comb += [
            last_tile.eq(tile == layer.tiles_last),
            last_group.eq(Mux(last_tile, layer.groups_last, c.groups - 1)),
            last_beat.eq(number == layer.beats_last),
            beat.group.eq(number),
            beat.valid.eq(mark.real & (number <= last_group)),
            beat.membrane.eq(membrane),
            beat.level.eq(level),
            beat.column.eq(mark.column),
            beat.tile_end.eq(mark.real & last_beat),
            beat.visit_end.eq(mark.real & last_beat & last_tile),
            beat.row_end.eq(mark.row_end & (~mark.real | (last_beat & last_tile))),
            beat.layer_end.eq(mark.layer_end & beat.row_end),
            self.o_sums.eq(kept),
            taken.eq(self.o.valid & self.o.ready),
        ]
        with m.FSM():
            with m.State("Wait"):
                m.d.comb += [
                    self.o.valid.eq(self.i_mark.valid & ~mark.real),
                    self.i_mark.ready.eq(~mark.real & self.o.ready),
                    self.i_sums.ready.eq(self.i_mark.valid & mark.real),
                ]
                with m.If(self.i_sums.valid & self.i_sums.ready):
                    m.d.sync += [kept.eq(self.i_sums.payload), number.eq(0)]
                    with m.If(tile == 0):
                        m.d.sync += [
                            membrane.eq(rows["membrane"] + mark.column * layer.membrane_pixel),
                            level.eq(rows["level"] + mark.column * layer.level_pixel),
                            self.param.eq(layer.param),
                        ]
                    m.next = "Run"
            with m.State("Run"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.i_mark.ready.eq(self.o.ready & last_beat & last_tile),
                ]
                with m.If(self.o.ready):
                    m.d.sync += [kept.eq(kept >> (c.units * c.acc_bits)), number.eq(number + 1)]
                    with m.If(beat.valid):
                        m.d.sync += [membrane.eq(membrane + 1), self.param.eq(self.param + 1)]
                    with m.If(last_beat):
                        m.d.sync += [
                            level.eq(level + layer.planes_last + 1),
                            tile.eq(Mux(last_tile, 0, tile + 1)),
                        ]
                        m.next = "Wait"
        for name, row in rows.items():
            with m.If(self.start):
                m.d.sync += row.eq(layer[name])
            with m.Elif(taken & beat.row_end):
                m.d.sync += row.eq(row + layer[f"{name}_row"])
        if c.leaks:
            self._stamps(m, taken)
        return m

    def _stamps(self, m, taken):
        """The memory of stamps: the step in which each position was visited last."""
        c, layer, beat = self._config, self.layer, self.o.payload
        m.submodules.stamps = store = memory.Memory(
            shape=c.stamp_bits, depth=c.positions, init=[], attrs=APART
        )
        write, read = store.write_port(), store.read_port()
        row = Signal.like(write.addr)
        m.d.comb += [
            read.addr.eq(row + self.i_mark.payload.column),
            read.en.eq(self.i_sums.valid & self.i_sums.ready),
            beat.owed.eq(self.now - read.data),
            write.addr.eq(Mux(self.clear, self.clear_addr, read.addr)),
            write.data.eq(Mux(self.clear, 0, self.now)),
            write.en.eq(self.clear | (taken & beat.visit_end & layer.leaks)),
        ]
        with m.If(self.start):
            m.d.sync += row.eq(layer.stamp)
        with m.Elif(taken & beat.row_end):
            m.d.sync += row.eq(row + layer.columns_last + 1)
