# amaranth: UnusedElaboratable=no
"""Updates against a list of groups: which group is sent in which cycle, with which sums."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth import Value
from core.harness import Bench, ones

from lbq_hw.core.fabric.sharing import SPREAD_LANES
from lbq_hw.core.neurons.neuron_unit import Positions
from lbq_hw.core.neurons.partial_updates import PartialUpdates
from lbq_hw.core.neurons.updates import Updates
from lbq_hw.sim.models.neurons import (
    ACC_BITS,
    LAYERS,
    TIMESTEPS,
    Traffic,
    layouts,
    random_layer,
    random_params,
    random_traffic,
)
from lbq_hw.sim.models.traffic import stalls

SIZES = [
    {"lanes": 8, "units": 2, "planes": 3, "decay_bits": 1},
    {"lanes": 4, "units": 4, "planes": 1, "decay_bits": 0},
    {"lanes": 4, "units": 2, "planes": 5, "decay_bits": 4},
    {"lanes": 4, "units": 4, "planes": 6, "decay_bits": 1},
    {"lanes": 32, "units": 8, "planes": 3, "decay_bits": 1},
]
PARAM_BITS = 8


class Fed(PartialUpdates):
    """Makes the copies of ``i_sum.valid`` that lanes would give."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.i_valids.eq(self.i_sum.valid.replicate(len(self.i_valids)))
        return m


def build(
    *, lanes: int, units: int, planes: int, decay_bits: int, partials: bool
) -> tuple[Updates, Positions]:
    layer, step = layouts(lanes=lanes, planes=planes, decay_bits=decay_bits, partials=partials)
    positions = Positions(planes=planes, decay_bits=decay_bits)
    updates = (Fed if partials else Updates)(
        lanes=lanes, units=units, acc_bits=ACC_BITS, timesteps=TIMESTEPS, param_bits=PARAM_BITS,
        layer=layer, step=step, positions=positions,
    )  # fmt: skip
    return updates, positions


def traffic_of(sizes: dict, kind: dict) -> Traffic:
    source = random.Random(f"{sizes}{kind}")
    layer = random_layer(source, sizes, kind)
    shape = {name: sizes[name] for name in ("lanes", "units", "planes")}
    return random_traffic(source, layer, random_params(source, sizes["lanes"]), **shape)


def run(
    sizes: dict, kind: dict, rate: float, *, partials: bool
) -> tuple[list[int], list[tuple], list[tuple], dict]:
    """Cycles of the steps, groups with their cycle as they came and as they should, all seen."""
    updates, positions = build(**sizes, partials=partials)
    traffic = traffic_of(sizes, kind)
    bench = Bench(updates)
    bench.hold((updates.layer, traffic.layer))
    room = bench.probe(room=updates.room)["room"]
    pause = stalls(1, rate)
    driver = bench.drive(
        updates.i_sum, traffic.sums, stall=lambda: pause() or not (room and room[-1])
    )
    bench.drive(updates.i_step, traffic.steps)
    names = [name for name, field in updates.o.shape() if field.width]
    groups = {name: Value.cast(updates.o[name]) for name in names}
    totals = {f"sum_{i}": Value.cast(updates.sums[i]) for i in range(sizes["units"])}
    seen = bench.probe(
        **groups, **totals, place=updates.step.write.addr, busy=updates.busy, room=updates.room,
        **({"rooms": updates.rooms} if partials else {}),
    )  # fmt: skip
    bench.run(extra=40)
    found = [
        (cycle, tuple(seen[name][cycle] for name in (*names, *totals, "place")))
        for cycle in ones(seen["valid"])
    ]
    expected = model(driver.cycles, traffic, sizes, positions, names)
    return driver.cycles, found, expected, seen


def model(
    taken: list[int], traffic: Traffic, sizes: dict, positions: Positions, names: list[str]
) -> list[tuple]:
    """Every group, with its cycle, of steps that were taken in these cycles."""
    units, layer = sizes["units"], traffic.layer
    groups = sizes["lanes"] // units
    found: list[tuple[int, tuple[Any, ...]]] = []
    began, time = -100, 0
    for cycle, total, step in zip(taken, traffic.sums, traffic.steps, strict=True):
        time = 0 if step["first_t"] else time
        emits = int(step["pool_last"] and not layer["readout"])
        for update in range(layer["updates"]):
            fresh = int(step["first_t"] and update == 0)
            apart = max(groups, 0 if fresh else positions.loop, emits * layer["planes"])
            began = max(cycle + 1, began + apart)
            last_update = update == layer["updates"] - 1
            for group in range(groups):
                values = {
                    "valid": 1,
                    "group": group,
                    "param": step["group"] + group,
                    "time": time,
                    "restart": int(update == 0),
                    "fresh": fresh,
                    "last": int(group == groups - 1),
                    "pool_first": step["pool_first"],
                    "emit": emits,
                    "logits": int(layer["readout"] and step["last_t"] and last_update),
                }
                part = total[group * units : (group + 1) * units]
                place = step["write"]["addr"]
                found.append((began + group, (*(values[n] for n in names), *part, place)))
            time += 1
    return found


@pytest.mark.parametrize("kind", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("partials", [False, True], ids=["whole", "partial"])
def test_every_group_is_sent_in_its_cycle_with_its_sums(
    sizes: dict, kind: dict, rate: float, partials: bool
) -> None:
    taken, found, expected, seen = run(sizes, kind, rate, partials=partials)
    assert found == expected
    if partials:
        copies = (1 << -(-sizes["lanes"] // SPREAD_LANES)) - 1
        assert seen["rooms"] == [copies * room for room in seen["room"]]
    groups = sizes["lanes"] // sizes["units"]
    busy = set()
    each = len(expected) // len(taken)
    for number, cycle in enumerate(taken):
        last = expected[(number + 1) * each - 1][0]
        busy |= set(range(cycle + 1, last + 1))
        if rate == 0 and number + 1 < len(taken):
            # With the last group of the last update, or a cycle later.
            assert taken[number + 1] == last + (groups == 1)
            assert seen["room"][taken[number + 1] - 1] == 1
    assert ones(seen["busy"]) == sorted(busy)
