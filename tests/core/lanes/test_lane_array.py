# amaranth: UnusedElaboratable=no
"""LaneArray against sums in Python's integers."""

from __future__ import annotations

import random
import re

import pytest
from amaranth.back import verilog
from core.harness import Bench

from lbq_hw.core.fabric.sharing import LANES, SPREAD_LANES
from lbq_hw.core.lanes.lane_array import LaneArray
from lbq_hw.core.lanes.spread_lanes import PairLanes, SpreadLanes, TapeLanes
from lbq_hw.sim.models.lanes import (
    Pairs,
    Tape,
    golden,
    golden_pairs,
    in_pairs,
    packed,
    random_events,
    random_weights,
)
from lbq_hw.sim.models.traffic import stalls
from lbq_hw.sim.verilog import ports

SIZES = [
    {"lanes": 4, "rows": 5, "weight_bits": 2, "acc_bits": 8},
    {"lanes": 8, "rows": 16, "weight_bits": 8, "acc_bits": 22},
    {"lanes": 2 * LANES, "rows": 4, "weight_bits": 4, "acc_bits": 16},
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_sums_equal_golden_under_random_stalls(sizes: dict, rate: float) -> None:
    source = random.Random(7)
    shape = {name: sizes[name] for name in ("lanes", "rows")}
    weights = random_weights(source, **shape, weight_bits=sizes["weight_bits"])
    events = random_events(source, 60, **shape)
    expected = golden(events, weights, sizes["acc_bits"])
    lanes = LaneArray(**sizes, init=packed(weights, sizes["weight_bits"]))
    bench = Bench(lanes)
    bench.drive(lanes.i_event, events, stall=stalls(1, rate))
    bench.permit(lanes.room, stall=stalls(2, rate))
    sums = bench.monitor(lanes.o_sum, len(expected))
    bench.run(extra=5)
    assert sums.payloads == expected


def test_without_masks_one_bit_is_for_all_lanes() -> None:
    source = random.Random(3)
    sizes = {"lanes": 8, "rows": 16}
    weights = random_weights(source, **sizes, weight_bits=8)
    events = random_events(source, 60, **sizes)
    every = [event | {"mask": 255 * (event["mask"] & 1)} for event in events]
    lanes = LaneArray(**sizes, weight_bits=8, acc_bits=22, masks=False, init=packed(weights, 8))
    bench = Bench(lanes)
    bench.drive(lanes.i_event, [event | {"mask": event["mask"] & 1} for event in events])
    bench.permit(lanes.room)
    expected = golden(every, weights, 22)
    sums = bench.monitor(lanes.o_sum, len(expected))
    bench.run(extra=5)
    assert sums.payloads == expected


def test_an_event_is_taken_every_cycle_and_sums_follow_three_cycles_later() -> None:
    source = random.Random(1)
    events = random_events(source, 40, lanes=4, rows=8)
    lanes = LaneArray(lanes=4, rows=8, weight_bits=4, acc_bits=16)
    bench = Bench(lanes)
    taken = bench.drive(lanes.i_event, events)
    bench.permit(lanes.room)
    sums = bench.monitor(lanes.o_sum, sum(event["end"] for event in events))
    busy = bench.probe(busy=lanes.busy)["busy"]
    bench.run(extra=2)
    assert taken.cycles == list(range(taken.cycles[0], taken.cycles[0] + len(events)))
    ends = [cycle for cycle, event in zip(taken.cycles, events, strict=True) if event["end"]]
    assert sums.cycles == [cycle + 3 for cycle in ends]
    first, last = taken.cycles[0], sums.cycles[-1]
    assert [cycle for cycle, bit in enumerate(busy) if bit] == list(range(first + 1, last + 1))


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_rows_written_whole_are_added_a_cycle_later(rate: float) -> None:
    source = random.Random(5)
    lanes = Tape(lanes=48, rows=8, weight_bits=8, acc_bits=20)
    weights = random_weights(source, lanes=48, rows=8, weight_bits=8)
    events = random_events(source, 60, lanes=48, rows=8)
    expected = golden(events, weights, 20)
    port, rows = lanes.weights, packed(weights, 8)
    bench = Bench(lanes)
    bench.script(
        {"addr": port.addr, "data": port.data.as_value(), "en": port.en},
        [{"addr": i, "data": row, "en": 1} for i, row in enumerate(rows)],
    )
    early, stall = iter(range(100)), stalls(1, rate)
    taken = bench.drive(
        lanes.i_event, events, stall=lambda: next(early, len(rows)) < len(rows) or stall()
    )
    bench.permit(lanes.room, stall=stalls(2, rate))
    sums = bench.monitor(lanes.o_sum, len(expected))
    seen = bench.probe(busy=lanes.busy, valid=lanes.o_sum.valid, valids=lanes.o_valids)
    bench.run(extra=2)
    assert sums.payloads == expected
    assert len(lanes.o_valids) == 2 * 48 // SPREAD_LANES
    copies = (1 << len(lanes.o_valids)) - 1
    assert seen["valids"] == [copies * valid for valid in seen["valid"]]
    busy = seen["busy"]
    if not rate:
        ends = [cycle for cycle, event in zip(taken.cycles, events, strict=True) if event["end"]]
        assert sums.cycles == [cycle + 4 for cycle in ends]
        first, last = taken.cycles[0], sums.cycles[-1]
        assert [cycle for cycle, bit in enumerate(busy) if bit] == list(range(first + 1, last + 1))


@pytest.mark.parametrize("sizes", [(48, 8, 4), (16, 30, 2), (16, 2, 8)])
@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("masks", [False, True])
def test_pairs_of_rows_are_added_two_cycles_later(
    sizes: tuple[int, int, int], rate: float, masks: bool
) -> None:
    count, rows, bits = sizes
    source = random.Random(f"{sizes} {rate}")
    lanes = Pairs(lanes=count, rows=rows, weight_bits=bits, acc_bits=20, masks=masks)
    weights = random_weights(source, lanes=count, rows=rows, weight_bits=bits)
    events = in_pairs(source, random_events(source, 60, lanes=count, rows=rows), rows)
    every = (1 << count) - 1
    if not masks:
        events = [event | {"mask": event["mask"] & 1} for event in events]
    whole = events if masks else [event | {"mask": every * event["mask"]} for event in events]
    expected = golden_pairs(whole, weights, 20)
    port, packs = lanes.weights, packed(weights, bits)
    bench = Bench(lanes)
    bench.script(
        {"addr": port.addr, "data": port.data.as_value(), "en": port.en},
        [{"addr": i, "data": row, "en": 1} for i, row in enumerate(packs)],
    )
    early, stall = iter(range(100)), stalls(1, rate)
    taken = bench.drive(lanes.i_event, events, stall=lambda: next(early, rows) < rows or stall())
    bench.permit(lanes.room, stall=stalls(2, rate))
    sums = bench.monitor(lanes.o_sum, len(expected))
    busy = bench.probe(busy=lanes.busy)["busy"]
    bench.run(extra=2)
    assert sums.payloads == expected
    if not rate:
        assert taken.cycles == list(range(taken.cycles[0], taken.cycles[0] + len(events)))
        ends = [cycle for cycle, event in zip(taken.cycles, events, strict=True) if event["end"]]
        assert sums.cycles == [cycle + 5 for cycle in ends]
        first, last = taken.cycles[0], sums.cycles[-1]
        assert [cycle for cycle, bit in enumerate(busy) if bit] == list(range(first + 1, last + 1))


FAR = [
    {"lanes": 8, "rows": 1700, "weight_bits": 4, "acc_bits": 20},
    {"lanes": 4, "rows": 5, "weight_bits": 2, "acc_bits": 8},
    {"lanes": 2 * SPREAD_LANES, "rows": 600, "weight_bits": 3, "acc_bits": 16},
]


@pytest.mark.parametrize("sizes", FAR, ids=str)
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_rows_that_fill_a_chip_are_added_two_cycles_later(sizes: dict, rate: float) -> None:
    source = random.Random(6)
    shape = {name: sizes[name] for name in ("lanes", "rows")}
    weights = random_weights(source, **shape, weight_bits=sizes["weight_bits"])
    events = random_events(source, 100, **shape)
    expected = golden(events, weights, sizes["acc_bits"])
    lanes = SpreadLanes(**sizes, init=packed(weights, sizes["weight_bits"]))
    bench = Bench(lanes)
    taken = bench.drive(lanes.i_event, events, stall=stalls(1, rate))
    bench.permit(lanes.room, stall=stalls(2, rate))
    sums = bench.monitor(lanes.o_sum, len(expected))
    busy = bench.probe(busy=lanes.busy)["busy"]
    bench.run(extra=2)
    assert sums.payloads == expected
    if not rate:
        assert taken.cycles == list(range(taken.cycles[0], taken.cycles[0] + len(events)))
        ends = [cycle for cycle, event in zip(taken.cycles, events, strict=True) if event["end"]]
        assert sums.cycles == [cycle + 5 for cycle in ends]
        first, last = taken.cycles[0], sums.cycles[-1]
        assert [cycle for cycle, bit in enumerate(busy) if bit] == list(range(first + 1, last + 1))


@pytest.mark.parametrize(("kind", "way"), [(LaneArray, 2), (SpreadLanes, 4)])
def test_events_wait_exactly_while_there_is_no_room_for_a_sum(
    kind: type[LaneArray], way: int
) -> None:
    source = random.Random(2)
    events = random_events(source, 30, lanes=4, rows=8)
    lanes = kind(lanes=4, rows=8, weight_bits=4, acc_bits=16)
    assert lanes.way == way
    bench = Bench(lanes)
    taken = bench.drive(lanes.i_event, events)
    bench.permit(lanes.room, stall=stalls(3, 0.5))
    sums = bench.monitor(lanes.o_sum, sum(event["end"] for event in events))
    seen = bench.probe(ready=lanes.i_event.ready, room=lanes.room)
    bench.run(extra=3)
    ready = [True] * len(seen["ready"])
    found = []
    for cycle, event in zip(taken.cycles, events, strict=True):
        if event["end"]:
            moves = [later for later in range(cycle + 1, len(ready)) if ready[later]]
            there = moves[way - 1] + 1
            offered = next(c for c in range(there, len(ready)) if seen["room"][c - 1])
            ready[there:offered] = [False] * (offered - there)
            found.append(offered)
    assert found == sums.cycles
    assert not all(ready)
    assert seen["ready"] == ready


@pytest.mark.parametrize("kind", [LaneArray, SpreadLanes])
def test_written_weights_are_used_and_lanes_without_enable_keep_theirs(
    kind: type[LaneArray],
) -> None:
    sizes = {"lanes": 4, "rows": 3, "weight_bits": 8, "acc_bits": 16}
    lanes = kind(**sizes, init=packed([[1, 2, 3, 4], [5, 6, 7, 8]], 8))
    bench = Bench(lanes)
    [row] = packed([[-1, -128, 127, 9]], 8)
    port = lanes.weights
    write = {"addr": 1, "data": row, "en": 0b0110}
    bench.script({"addr": port.addr, "data": port.data.as_value(), "en": port.en}, [write, {}])
    event = {"row": 1, "mask": 15, "clear": 1, "double": 0, "end": 0}
    events = [event, {"row": 0, "mask": 0, "clear": 0, "double": 0, "end": 1}]
    cycles = iter(range(1000))
    bench.drive(lanes.i_event, events, stall=lambda: next(cycles) < 1)
    bench.permit(lanes.room)
    sums = bench.monitor(lanes.o_sum, 1)
    bench.run()
    assert sums.payloads == [[5, -128, 127, 8]]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"lanes": 0}, ValueError, "lanes must be at least 1, not 0"),
        ({"rows": "8"}, TypeError, "rows must be an integer, not '8'"),
        ({"weight_bits": 1}, ValueError, "weight_bits must be at least 2, not 1"),
        ({"acc_bits": 7}, ValueError, "acc_bits must be at least weight_bits, not 7"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [LaneArray, TapeLanes])
def test_sizes_that_make_no_sense_are_refused(
    kind: type[LaneArray], change: dict, error: type, text: str
) -> None:
    sizes = {"lanes": 4, "rows": 8, "weight_bits": 8, "acc_bits": 16}
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        kind(**sizes | change)


def test_pairs_of_an_odd_number_of_rows_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^pairs must be of an even number of rows, not 9$"):
        PairLanes(lanes=16, rows=9, weight_bits=8, acc_bits=16)


def test_the_lanes_convert_to_verilog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    lanes = LaneArray(lanes=4, rows=16, weight_bits=8, acc_bits=20)
    text = verilog.convert(lanes, ports=ports(lanes))
    assert "output [79:0] o_sum__payload" in text
    assert " * " not in text.replace("(* ", "").replace(" *)", "")
