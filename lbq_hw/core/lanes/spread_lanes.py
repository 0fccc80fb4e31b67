"""Weight memory and lanes of cores that fill a good part of a chip."""

from amaranth import Cat
from amaranth.lib import data, memory
from amaranth.lib.wiring import In, Out

from lbq_hw.config import Profile
from lbq_hw.core.fabric.sharing import SPREAD_LANES, lane_groups
from lbq_hw.core.lanes.lane_array import LaneArray
from lbq_hw.core.lanes.lane_group import PairLaneGroup, SpreadLaneGroup
from lbq_hw.core.memory.far_rows import FarRows, lanes_a_slice
from lbq_hw.core.memory.spread import SpreadRows
from lbq_hw.core.payload import PairEvent
from lbq_hw.core.timing import TAPE, TIMINGS

__all__ = ["PairLanes", "SpreadLanes", "TapeLanes"]


class SpreadLanes(LaneArray):
    """As `LaneArray`, with weights in a `FarRows`: each group of lanes has a slice beside it."""

    STAGES = TIMINGS[Profile.SPREAD].weight_read
    GROUP = SpreadLaneGroup

    def _lanes_each(self) -> int:
        return lanes_a_slice(self._rows, len(self.weights.data[0]))

    def _connect_weights(self, m, groups):
        lanes, bits = len(self.o_sum.payload), len(self.weights.data[0])
        m.submodules.memory = store = FarRows(
            rows=self._rows, lanes=lanes, weight_bits=bits, slices=len(groups), init=self._init
        )
        m.d.comb += store.advance.eq(Cat(group.fetch for group in groups))
        self._connect_store(m, store, groups)


class TapeLanes(LaneArray):
    """As `LaneArray`, for weights that the tape writes, a whole row at a time.

    A row may be written at any time, unless an event that adds this row is in flight: see
    `SpreadRows`.

    Members
    -------
    weights : write port of a row
    rooms : in
        Copies of ``room``, one for each `SPREAD_LANES` lanes.
    o_valids : out
        Copies of ``o_sum.valid``, two for each `SPREAD_LANES` lanes.
    """

    STAGES = TAPE.weight_read
    GROUP = SpreadLaneGroup

    def _more_members(self, row, row_bits):
        groups = lane_groups(row.length, SPREAD_LANES)
        return {
            "weights": Out(memory.WritePort.Signature(addr_width=row_bits, shape=row)),
            "rooms": In(groups),
            "o_valids": Out(2 * groups),
        }

    def _lanes_each(self) -> int:
        return SPREAD_LANES

    def _connect_rooms(self, m, groups):
        m.d.comb += [group.room.eq(room) for group, room in zip(groups, self.rooms, strict=True)]
        m.d.comb += self.o_valids.eq(Cat(group.offers for group in groups))

    def _connect_weights(self, m, groups):
        m.submodules.memory = store = self._store(groups, self._rows)
        m.d.comb += store.advance.eq(Cat(group.advance for group in groups))
        self._connect_store(m, store, groups)

    def _store(self, groups, rows):
        width = len(self.weights.data.as_value())
        return SpreadRows(width=width, depth=rows, advance=len(groups))


class PairLanes(TapeLanes):
    """As `TapeLanes`, where an event may add an even and an odd row; two memories hold the rows.

    Parameters
    ----------
    rows : int
        An even number.
    """

    PAIRING = 1
    GROUP = PairLaneGroup

    def __init__(self, *, rows: int, **sizes):
        super().__init__(rows=rows, **sizes)
        if rows % 2:
            raise ValueError(f"pairs must be of an even number of rows, not {rows!r}")

    def _event(self, **sizes) -> PairEvent:
        return PairEvent(**sizes)

    def _connect_weights(self, m, groups):
        event, weights = self.i_event, self.weights
        for odd in range(2):
            m.submodules[f"memory_{odd}"] = store = self._store(groups, self._rows // 2)
            m.d.comb += [
                store.advance.eq(Cat(group.advance for group in groups)),
                store.write.addr.eq(weights.addr >> 1),
                store.write.data.eq(weights.data),
                store.write.en.eq(weights.en & (weights.addr[0] == odd)),
                store.read.addr.eq(event.payload.rows[odd]),
                store.read.en.eq(event.valid & event.ready),
            ]
            row = data.View(weights.data.shape(), store.read.data)
            for group, lanes in zip(groups, self._parts(), strict=True):
                m.d.comb += [group.weights[odd][i].eq(row[lane]) for i, lane in enumerate(lanes)]
        m.d.comb += [group.adds.eq(event.payload.adds) for group in groups]
