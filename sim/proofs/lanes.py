"""Lanes of every profile against the definition of their sums, so that all profiles are equal."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from amaranth import Array, Mux, Signal, Value, signed

from lbq_hw.core.payload import PairEvent
from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_LANES, _WEIGHT, _ACC = 2, 2, 4
_WAITING = 6  # largest number of sums in flight


def _sums(code: ModuleType, kind: str, rows: int) -> Contract:
    """Events add to a model as they are taken; its sums wait in a list for those of the lanes."""
    c = Contract()
    sizes = {"lanes": _LANES, "rows": rows, "weight_bits": _WEIGHT, "acc_bits": _ACC}
    lanes = c.add(getattr(code, kind)(**sizes))
    m, event, weights = c.m, lanes.i_event.payload, lanes.weights
    taken = lanes.i_event.valid & lanes.i_event.ready
    c.offered(lanes.i_event)
    if hasattr(lanes, "rooms"):
        m.d.comb += lanes.rooms.eq(lanes.room.replicate(len(lanes.rooms)))
    writes = Value.cast(weights.en).any()
    c.assume(~writes | ~(lanes.busy | lanes.i_event.valid))
    c.assume(~(event.clear & event.double))
    begun = Signal()  # the first event of a step clears
    c.assume(~taken | event.clear | begun)
    with m.If(taken):
        m.d.sync += begun.eq(~event.end)

    kept = [_row(c, lanes, row) for row in range(rows)]
    sums = []
    for lane in range(_LANES):
        acc, total = Signal(signed(_ACC)), Signal(signed(_ACC))
        start = Mux(event.clear, 0, Mux(event.double, acc << 1, acc))
        m.d.comb += total.eq(start + Mux(event.mask[lane], _weight(event, kept, lane), 0))
        with m.If(taken):
            m.d.sync += acc.eq(total)
        sums.append(total)
    _in_order(c, taken & event.end, sums, lanes.o_sum)
    return c


def _row(c: Contract, lanes: Any, row: int) -> list[Signal]:
    """What was written to a row."""
    weights, kept = lanes.weights, []
    for lane in range(_LANES):
        value = Signal(signed(_WEIGHT), name=f"weight_{row}_{lane}")
        enable = weights.en[lane] if len(weights.en) > 1 else weights.en
        with c.m.If(enable & (weights.addr == row)):
            c.m.d.sync += value.eq(weights.data[lane])
        kept.append(value)
    return kept


def _weight(event: Any, rows: list[list[Signal]], lane: int) -> Any:
    """What an event adds in a lane."""
    weights = [row[lane] for row in rows]
    if not isinstance(event.shape(), PairEvent):
        return Array(weights)[event.row]
    pair = [Array(weights[odd::2])[event.rows[odd]] for odd in range(2)]
    return sum(Mux(adds, weight, 0) for adds, weight in zip(event.adds, pair, strict=True))


def _in_order(c: Contract, put: Any, sums: list[Signal], port: Any) -> None:
    m, count, get = c.m, Signal(range(_WAITING + 1)), port.valid
    left = count - get
    m.d.sync += count.eq(left + put)
    c.must(~get | (count != 0))
    c.must(count < _WAITING)
    for lane, total in enumerate(sums):
        waiting = [Signal(signed(_ACC), name=f"sum_{lane}_{i}") for i in range(_WAITING + 1)]
        for place in range(_WAITING):
            m.d.sync += waiting[place].eq(Mux(get, waiting[place + 1], waiting[place]))
            with m.If(put & (left == place)):
                m.d.sync += waiting[place].eq(total)
        c.must(~get | (port.payload[lane] == waiting[0]))


def _proof(
    kind: str, module: str, says: str, bug: Bug, *, rows: int = 2, fast: bool = False
) -> Proof:
    return Proof(
        name=f"{kind.lower()}",
        says=f"{says}: sums in order, for any events, weights and stalls",
        module=f"lbq_hw.core.lanes.{module}",
        contract=lambda code: _sums(code, kind, rows),
        bug=bug,
        cycles=9,
        fast=fast,
    )


PROOFS = (
    _proof(
        "LaneArray",
        "lane_array",
        "lanes of compact and standard cores",
        Bug(old="(~first.advance | first.ends)", new="(first.advance | first.ends)"),
        fast=True,
    ),
    _proof(
        "SpreadLanes",
        "spread_lanes",
        "lanes of spread cores",
        Bug(old="group.fetch for group in groups", new="~group.fetch for group in groups"),
    ),
    _proof(
        "TapeLanes",
        "spread_lanes",
        "lanes of cores with external memory",
        Bug(
            old="""        m.submodules.memory = store = self._store(groups, self._rows)
        m.d.comb += store.advance.eq(Cat(group.advance for group in groups))""",
            new="""        m.submodules.memory = store = self._store(groups, self._rows)
        m.d.comb += store.advance.eq(Cat(group.ends for group in groups))""",
        ),
    ),
    _proof(
        "PairLanes",
        "spread_lanes",
        "lanes that add two weights per event",
        Bug(old="weights.addr[0] == odd", new="weights.addr[0] == 0"),
        rows=4,
    ),
)
