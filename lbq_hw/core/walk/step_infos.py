"""The StepInfo of every step: its place in the loops, and where its levels are written."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.payload import StepInfo
from lbq_hw.core.stream.queue import Queue
from lbq_hw.core.walk import records
from lbq_hw.core.walk.loops import Advance, LoopState
from lbq_hw.core.walk.places import further, offset_bits

__all__ = ["STEPS_AHEAD", "PassSteps", "StepInfos", "step_infos", "step_layout"]

STEPS_AHEAD = 17
"""StepInfos that can wait for their sums."""


def step_layout(config: CoreConfig) -> StepInfo:
    """The StepInfo of a core; its address reaches every plane word."""
    return StepInfo(
        lanes=config.lanes,
        word=config.word,
        address_bits=config.plane_address_bits,
        group_bits=address_bits(config.channels // config.units),
    )


class StepInfos(wiring.Component):
    """Computes the address that each step writes, by one addition per advance of the loops, and
    queues the StepInfos.

    Timing. ``beyond`` and the StepInfo to be pushed are valid three cycles after ``start`` or
    ``go``. The queue holds `STEPS_AHEAD` StepInfos; each is offered two cycles after its ``push``
    if the queue was empty.

    Members
    -------
    layer : in
        The LAYER record; stable from ``start`` on until the next one.
    readout, reach : in
        As in `LayerLoader`.
    clear : in
        A program begins: logits are counted from 0.
    start, go, following, state : in
        As in `Loops`.
    beyond, error : out
        The step would write beyond the plane memory or the logits memory, with its `ErrorCode`.
    push : in
        Queue the StepInfo of this step; only with ``room``.
    room : out
    o : stream of `StepInfo`
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        super().__init__(
            {
                "layer": In(records.layout(isa.LAYER, config)),
                "readout": In(1),
                "reach": In(offset_bits(config)),
                "clear": In(1),
                "start": In(1),
                "go": In(1),
                "following": In(Advance),
                "state": In(LoopState(config)),
                "beyond": Out(1),
                "push": In(1),
                "room": Out(1),
                "error": Out(ErrorCode),
                "o": Out(stream.Signature(step_layout(config))),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, write = self._config, self.o.payload.write
        changes = {
            "first_t": c.timesteps > 1,
            "last_t": c.timesteps > 1,
            "pool_first": c.window > 1,
            "pool_last": c.window > 1,
        }
        info = Signal(
            data.StructLayout(
                {
                    "addr": len(write.addr),
                    "place": len(write.place),
                    "param": address_bits(c.param_tiles),
                }
                | {name: 1 for name in changes if changes[name]}
            )
        )
        m.submodules.queue = queue = Queue(
            info.shape(), depth=STEPS_AHEAD, spare=self._config.spread
        )
        m.d.comb += [
            queue.i.valid.eq(self.push),
            queue.i.payload.eq(info),
            queue.o.ready.eq(self.o.ready),
            self.room.eq(queue.i.ready),
            self.o.valid.eq(queue.o.valid),
        ]
        self._settle(m, info)
        queued = queue.o.payload
        m.d.comb += [
            self.o.payload.group.eq(queued.param << ceil_log2(c.groups)),
            write.addr.eq(queued.addr),
            write.place.eq(queued.place),
            write.first.eq(queued.place == 0),
        ]
        for name, changing in changes.items():
            if changing:
                m.d.sync += info[name].eq(self.state[name])
            m.d.comb += self.o.payload[name].eq(queued[name] if changing else 1)
        return m

    def _settle(self, m, info):
        """Compute where the step writes."""
        c, layer, readout = self._config, self.layer, self.readout
        row, frame = Signal(offset_bits(c)), Signal(offset_bits(c))
        bit = Signal(len(layer.out_pitch) + len(layer.columns_last))
        logit_tiles = c.logits // c.lanes
        logit_tile = Signal(range(logit_tiles + 1))
        self._follow(m, row, frame, bit, logit_tile)

        tile_bit = Signal(len(bit) + 1)
        tile_word = tile_bit[c.word_log2 :]
        frame_row = Signal(offset_bits(c) + 1)
        place = Signal(max(len(frame_row), len(tile_word)) + 1)
        address = Signal.like(place)
        outside, no_logit = Signal(), Signal()
        if c.timesteps > 1:
            m.d.sync += frame_row.eq(row + frame)
        else:
            m.d.comb += frame_row.eq(row)
        m.d.sync += [
            tile_bit.eq(bit + (self.state.tile << c.lane_log2)),
            address.eq(place),
            outside.eq(~readout & self.state.pool_last & (place + self.reach >= c.plane_words)),
            info.place.eq(tile_bit[ceil_log2(c.granule) : c.word_log2]),
            info.param.eq(layer.param + self.state.tile),
        ]
        m.d.comb += [
            info.addr.eq(address),
            place.eq(frame_row + tile_word),
            no_logit.eq(readout & (logit_tile == logit_tiles)),
        ]
        self._refuse(m, outside | no_logit)

    def _refuse(self, m, beyond):
        """Refuse a step that would write beyond its memory."""
        m.d.comb += self.beyond.eq(beyond)
        m.d.comb += self.error.eq(Mux(self.readout, ErrorCode.LOGIT, ErrorCode.PLANE))

    def _gives_logits(self):
        return self.readout

    def _follow(self, m, row, frame, bit, logit_tile):
        """Update the row's first word, the offset of its frame, the pixel's first bit, and the
        number of logit tiles so far.
        """
        layer, gives_logits = self.layer, self._gives_logits()
        with m.If(self.clear):
            m.d.sync += logit_tile.eq(0)
        with m.If(self.start):
            m.d.sync += [row.eq(layer.out_base), frame.eq(0), bit.eq(0)]
        with m.Elif(self.go):
            m.d.sync += frame.eq(0)
            with m.Switch(self.following):
                with m.Case(Advance.TIMESTEP):
                    if self._config.timesteps > 1:
                        m.d.sync += frame.eq(further(frame, layer.out_frame))
                with m.Case(Advance.WINDOW_COLUMN, Advance.WINDOW_ROW):
                    pass
                with m.Default():
                    m.d.sync += logit_tile.eq(logit_tile + gives_logits)
            with m.Switch(self.following):
                with m.Case(Advance.COLUMN):
                    m.d.sync += bit.eq(bit + layer.out_pitch)
                with m.Case(Advance.ROW):
                    m.d.sync += [row.eq(further(row, layer.out_row)), bit.eq(0)]


class PassSteps(StepInfos):
    """As `StepInfos`, for passes with partial sums.

    A pass that stores partial sums writes no levels, so its steps are never refused for their
    addresses. In a pass with partial sums, the first step beyond their memory is refused with
    PARTIAL.
    """

    def _gives_logits(self):
        return self.readout & ~self.layer.partial_out

    def _refuse(self, m, beyond):
        layer, most = self.layer, self._config.partial_words // self._config.groups
        number, too_many = Signal(range(most + 1)), Signal()
        error = Mux(self.readout, ErrorCode.LOGIT, ErrorCode.PLANE)
        m.d.comb += [
            too_many.eq((layer.partial_in | layer.partial_out) & (number == most)),
            self.beyond.eq((beyond & ~layer.partial_out) | too_many),
            self.error.eq(Mux(too_many, ErrorCode.PARTIAL, error)),
        ]
        with m.If(self.start):
            m.d.sync += number.eq(0)
        with m.Elif(self.push & (number != most)):
            m.d.sync += number.eq(number + 1)


def step_infos(config: CoreConfig) -> type[StepInfos]:
    """The class of `StepInfos` for a core."""
    return PassSteps if config.external else StepInfos
