"""Weight memory and lanes: one event per cycle, one accumulation in every lane."""

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.config import Profile
from lbq_hw.core.fabric.registers import delayed_while
from lbq_hw.core.fabric.sharing import LANES
from lbq_hw.core.lanes.lane_group import ACTION, LaneGroup
from lbq_hw.core.memory.rows import RowMemory
from lbq_hw.core.payload import Event
from lbq_hw.core.sizes import check_size
from lbq_hw.core.timing import TIMINGS

__all__ = ["LaneArray"]


class LaneArray(wiring.Component):
    """Accumulates weight rows event by event, and offers the sums of each step.

    An event makes every lane compute ``acc = (clear ? 0 : double ? 2*acc : acc) + (mask[lane] ?
    weight[row][lane] : 0)``, modulo ``2**acc_bits``. An event with ``end`` completes a step. Its
    sums are offered once there is ``room`` for them; until then the lanes stall.

    Timing. An event taken in cycle c has its weights in cycle ``c + STAGES``, and adds them in
    cycle ``c + way``. In the cycle after the addition of an ``end``, the sums are complete. They
    are valid for one cycle, the first one after a cycle with ``room``. One event is taken per
    cycle, except while complete sums wait for ``room``: then ``i_event.ready`` is 0. No port
    depends combinationally on another; the lanes' enable is a register. The sums are the
    accumulators themselves, so the receiver must copy them in the cycle in which they are valid.
    The next step begins without a gap.

    Weights may be written while ``busy`` is 0; an event taken after the write uses them. No event
    is taken in the cycle of a write, because the memory may have a single port for both.

    Other cores have `SpreadLanes`, `TapeLanes` and `PairLanes`; `lane_array` chooses.

    Parameters
    ----------
    lanes : int
        Lanes P.
    rows : int
        Weight rows. An event with mask 0 may have any row.
    weight_bits, acc_bits : int
        Signed widths of a weight and of an accumulator.
    masks : bool
        Whether an event may add to some lanes only.
    init : iterable of int
        Weight rows after configuration, as `RowMemory` takes them.

    Members
    -------
    i_event : stream of `Event`
    o_sum : stream of ``lanes`` signed sums, always ready
    room : bit
        Sums can be taken in the next cycle.
    weights : write port of a row, one enable per lane
    busy : bit
        An event or a sum is in flight.
    """

    STAGES = TIMINGS[Profile.STANDARD].weight_read
    """Cycles to read weights."""
    PAIRING = 0
    """Cycles to add the two weights of a pair."""
    GROUP = LaneGroup

    def __init__(
        self,
        *,
        lanes: int,
        rows: int,
        weight_bits: int,
        acc_bits: int,
        masks: bool = True,
        init=(),
    ):
        check_size("lanes", lanes)
        check_size("rows", rows)
        check_size("weight_bits", weight_bits, least=2)
        check_size("acc_bits", acc_bits)
        if acc_bits < weight_bits:
            raise ValueError(f"acc_bits must be at least weight_bits, not {acc_bits!r}")
        self._rows = rows
        self._init = list(init)
        sums = data.ArrayLayout(signed(acc_bits), lanes)
        event = self._event(lanes=lanes, row_bits=ceil_log2(rows), masks=masks)
        row = data.ArrayLayout(signed(weight_bits), lanes)
        super().__init__(
            {
                "i_event": In(stream.Signature(event)),
                "o_sum": Out(stream.Signature(sums, always_ready=True)),
                "room": In(1),
                "busy": Out(1),
            }
            | self._more_members(row, ceil_log2(rows))
        )

    def _event(self, **sizes) -> Event:
        return Event(**sizes)

    def _more_members(self, row, row_bits):
        """Members that write weights, and copies of other members."""
        weights = memory.WritePort.Signature(addr_width=row_bits, shape=row, granularity=1)
        return {"weights": Out(weights)}

    @property
    def rows(self) -> int:
        """Weight rows."""
        return self._rows

    @property
    def way(self) -> int:
        """Cycles from an event to the addition of its weights."""
        return self.STAGES + self.PAIRING + 1

    def elaborate(self, _platform):
        m = Module()
        event, advance = self.i_event.payload, Signal()
        taken = Signal(ACTION)
        m.d.comb += taken.valid.eq(self.i_event.valid)
        m.d.comb += [taken[name].eq(event[name]) for name in ("clear", "double", "end")]
        stages = [taken]
        for stage in range(self.STAGES + self.PAIRING):
            stages.append(delayed_while(m, advance, stages[-1], 1, name=f"action_{stage}"))
        groups = self._make_groups(m)
        for group, lanes in zip(groups, self._parts(), strict=True):
            mask = event.mask[lanes.start : lanes.stop] if len(event.mask) > 1 else event.mask
            sums = Cat(self.o_sum.payload[lane] for lane in lanes)
            m.d.comb += [group.mask.eq(mask), group.action.eq(stages[-1]), sums.eq(Cat(group.sums))]
        first, offered = groups[0], Signal()
        m.d.sync += offered.eq(self.room & (~first.advance | first.ends))
        m.d.comb += [
            advance.eq(first.advance),
            self.i_event.ready.eq(advance),
            self.o_sum.valid.eq(offered),
            self.busy.eq(
                reduce(or_, (stage.valid for stage in stages[1:]), first.adding)
                | ~advance
                | offered
            ),
        ]
        self._connect_rooms(m, groups)
        self._connect_weights(m, groups)
        return m

    def _lanes_each(self) -> int:
        """Lanes of a group."""
        return LANES

    def _parts(self):
        """The lanes of each group."""
        lanes, each = len(self.o_sum.payload), self._lanes_each()
        return [range(lanes)[i : i + each] for i in range(0, lanes, each)]

    def _make_groups(self, m):
        weights, sums = self.weights.data[0], self.o_sum.payload[0]
        groups = []
        for i, lanes in enumerate(self._parts()):
            mask = len(self.i_event.payload.mask)
            m.submodules[f"group_{i}"] = group = self.GROUP(
                lanes=len(lanes),
                mask_bits=len(lanes) if mask > 1 else 1,
                stages=self.STAGES,
                weight_bits=len(weights),
                acc_bits=len(sums),
            )
            groups.append(group)
        return groups

    def _connect_rooms(self, m, groups):
        m.d.comb += [group.room.eq(self.room) for group in groups]

    def _connect_weights(self, m, groups):
        """Connect the weight memory; each group gets the weights of its lanes."""
        lanes, bits = len(self.o_sum.payload), len(self.weights.data[0])
        m.submodules.memory = store = RowMemory(
            rows=self._rows, lanes=lanes, weight_bits=bits, init=self._init
        )
        self._connect_store(m, store, groups)

    def _connect_store(self, m, store, groups):
        """Connect a memory that holds all rows."""
        event, weights = self.i_event, self.weights
        m.d.comb += [
            store.write.addr.eq(weights.addr),
            store.write.data.eq(weights.data),
            store.write.en.eq(weights.en),
            store.read.addr.eq(event.payload.row),
            store.read.en.eq(event.valid & event.ready),
        ]
        row = data.View(weights.data.shape(), store.read.data)
        for group, lanes in zip(groups, self._parts(), strict=True):
            m.d.comb += [group.weights[i].eq(row[lane]) for i, lane in enumerate(lanes)]
