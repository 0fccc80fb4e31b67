"""Reads and checks the LAYER record of the current layer, and derives values from it."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.fabric.registers import delayed
from lbq_hw.core.neurons.rules import rules_of
from lbq_hw.core.payload import LayerInfo, PassInfo
from lbq_hw.core.timing import timing
from lbq_hw.core.walk import records
from lbq_hw.core.walk.places import further, offset_bits
from lbq_hw.core.walk.tables import Table
from lbq_hw.isa.record import SLICE

__all__ = ["LayerLoader", "PassLoader", "layer_layout", "layer_loader"]


def layer_layout(config: CoreConfig) -> LayerInfo:
    """The LayerInfo of a core; its stride reaches every plane word."""
    return layer_loader(config).INFO(
        lanes=config.lanes,
        planes=config.planes,
        address_bits=config.plane_address_bits,
        update_bits=config.timesteps.bit_length(),
        decay_bits=config.decay_bits,
        shift_bits=max(1, config.fraction_bits.bit_length()),
        flags=[rule.name for rule in rules_of(config) if not rule.per_channel],
    )


class LayerLoader(wiring.Component):
    """Reads a LAYER record, one slice per cycle, and refuses an illegal one.

    The error is LAYER for whatever `Record.violations` names, for more paths than `layer_paths`,
    for the last entry of the table without `last`, and for neurons whose frames do not lie at the
    stride of the planes. It is PARAM for parameters beyond the parameter memory.

    Timing. A record has L slices, and ``load`` is 1 from cycle c on. Then ``layer_valid`` is 1 in
    cycle ``c + L + 1``. ``ready`` is 1 from cycle ``c + L + planes_last + 3`` on (in a static layer
    ``time_last`` cycles later) until the first cycle without ``load``. ``bad`` is 1 in cycle
    ``c + L + 2``, or, for frames at a wrong stride, in cycle ``c + L + planes_last + 3``. All of
    these are ``record_read`` cycles later, see `Timing`.

    Members
    -------
    table : read port of the LAYER table's slices, flipped
    number : in
        Number of the layer; stable while loading.
    load : in
        Level: rises only while ``ready`` and ``bad`` are 0, and stays 1 until one of them is 1.
    layer_valid : out
        Strobe: the first cycle in which ``layer`` is valid.
    layer : out
        The record; stable until the next ``load``.
    info : out, `LayerInfo`
        The fields that the blocks behind the walker need; stable while ``layer`` is.
    ready : out
        The layer is legal; the outputs below are valid as long as ``layer`` is.
    bad, error : out
        Strobe: the layer is illegal, with its `ErrorCode`.
    readout : out
        The flag of ``layer``.
    paths_last : out
        Number of the layer's paths minus 1.
    reach : out
        Distance in words from the first plane that a step writes to its last.
    """

    INFO = LayerInfo

    def __init__(self, config: CoreConfig):
        self._config = config
        table = memory.ReadPort.Signature(addr_width=Table.LAYERS.bits(config), shape=SLICE)
        super().__init__(
            {
                "table": In(table),
                "number": In(address_bits(config.layers)),
                "load": In(1),
                "layer_valid": Out(1),
                "layer": Out(records.layout(isa.LAYER, config)),
                "info": Out(layer_layout(config)),
                "ready": Out(1),
                "bad": Out(1),
                "error": Out(ErrorCode),
                "readout": Out(1),
                "paths_last": Out(address_bits(config.layer_paths)),
                "reach": Out(offset_bits(config)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, layer = self._config, self.layer
        read, complete = Signal(), Signal()
        count = Signal(range(max(c.planes, c.timesteps)))
        bad_layer = Signal()
        bad_param = Signal()
        beyond_table = self._beyond_table()
        self._read(m, read, complete)
        self._inform(m)
        m.d.comb += self.error.eq(Mux(bad_layer, ErrorCode.LAYER, ErrorCode.PARAM))

        with m.FSM():
            with m.State("READ"):
                m.d.comb += read.eq(self.load)
                with m.If(complete):
                    m.next = "LOOK"
            with m.State("LOOK"):
                m.d.comb += self.layer_valid.eq(1)
                m.d.sync += [
                    self.paths_last.eq(layer.path_last - layer.path_first),
                    bad_layer.eq(
                        records.illegal(isa.LAYER, c, layer)
                        | (layer.path_last - layer.path_first >= c.layer_paths)
                        | beyond_table
                    ),
                    bad_param.eq(layer.param + layer.tiles_last >= c.param_tiles),
                    self.readout.eq(layer.readout),
                    self.reach.eq(0),
                    count.eq(layer.planes_last),
                ]
                m.next = "ADD PLANES"
            with m.State("ADD PLANES"):
                with m.If(bad_layer | bad_param):
                    m.d.comb += self.bad.eq(1)
                    m.next = "READ"
                with m.Elif(count != 0):
                    m.d.sync += self.reach.eq(further(self.reach, layer.out_plane))
                    m.d.sync += count.eq(count - 1)
                with m.Else():
                    apart = self.reach + layer.out_plane != layer.out_frame
                    m.d.sync += [
                        count.eq(Mux(layer.static, layer.time_last, 0)),
                        bad_layer.eq(~self.readout & (layer.time_last != 0) & apart),
                    ]
                    m.next = "ADD FRAMES"
            with m.State("ADD FRAMES"):
                with m.If(bad_layer):
                    m.d.comb += self.bad.eq(1)
                    m.next = "READ"
                with m.Elif(count != 0):
                    m.d.sync += self.reach.eq(further(self.reach, layer.out_frame))
                    m.d.sync += count.eq(count - 1)
                with m.Else():
                    m.d.comb += self.ready.eq(1)
                    with m.If(~self.load):
                        m.next = "READ"
        return m

    def _beyond_table(self):
        """Whether the next layer would lie beyond the table."""
        return ~self.layer.last & (self.number == self._config.layers - 1)

    def _again(self, _m):
        """Whether one sum serves all timesteps."""
        return self.layer.static

    def _inform(self, m):
        """The LayerInfo of the record."""
        layer, info, granule_log2 = self.layer, self.info, ceil_log2(self._config.granule)
        m.d.comb += [info[flag].eq(layer[flag]) for flag in info.shape().flags]
        m.d.comb += [
            info.updates.eq(Mux(self._again(m), layer.time_last + 1, 1)),
            info.readout.eq(layer.readout),
            info.capacity.eq(layer.capacity),
            info.decay.eq(layer.decay),
            info.shift.eq(layer.fraction),
            info.stride.eq(layer.out_plane),
            info.planes.eq(layer.planes_last + 1),
            info.granules.eq((1 << layer.out_chunk) >> granule_log2),
        ]

    def _read(self, m, read, complete):
        """Store the slices of `layer` while `read`; the last one is stored with `complete`."""
        c = self._config
        record, parts = self.layer.as_value(), isa.LAYER.slices(c)
        behind = timing(c).record_read
        cycles = parts + behind
        asked, record_valid, record_part = (
            Signal(range(cycles + 1)),
            Signal(),
            Signal(range(cycles)),
        )
        table_data = self.table.data
        m.d.comb += [
            self.table.en.eq(read & ~complete),
            self.table.addr.eq(Cat(asked[: Table.LAYERS.part_bits(c)], self.number)),
            complete.eq(asked == cycles),
        ]
        m.d.sync += [record_valid.eq(self.table.en), record_part.eq(asked), asked.eq(0)]
        with m.If(self.table.en):
            m.d.sync += asked.eq(asked + 1)
        record_valid = delayed(m, record_valid, behind, name="record_valid")
        record_part = delayed(m, record_part, behind, name="record_part")
        table_data = delayed(m, table_data, behind, name="table_data")
        with m.If(record_valid):
            for i in range(parts):
                with m.If(record_part == i):
                    m.d.sync += record[SLICE * i : SLICE * (i + 1)].eq(table_data)


class PassLoader(LayerLoader):
    """As `LayerLoader`, for the passes of a tape: entry 0 follows the last entry of the table.

    A pass that stores partial sums has one update per step.
    """

    INFO = PassInfo

    def _beyond_table(self):
        return Const(0)

    def _again(self, m):
        layer, info = self.layer, self.info
        m.d.comb += info.partial_in.eq(layer.partial_in)
        m.d.comb += info.partial_out.eq(layer.partial_out)
        return layer.static & ~layer.partial_out


def layer_loader(config: CoreConfig) -> type[LayerLoader]:
    """The loader for a core."""
    return PassLoader if config.external else LayerLoader
