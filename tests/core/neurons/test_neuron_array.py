# amaranth: UnusedElaboratable=no
"""NeuronArray against `lbq_hw.numeric`."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from amaranth.back import verilog
from core.harness import Bench, ones

from lbq_hw.config import Profile
from lbq_hw.core.neurons.compact_neurons import CompactNeurons
from lbq_hw.core.neurons.neuron_array import NeuronArray
from lbq_hw.core.neurons.partial_neurons import PartialNeurons
from lbq_hw.network.neuron import SUBTRACT, TO_ZERO
from lbq_hw.sim.models.neurons import (
    LAYERS,
    MEMBRANE_BITS,
    TILES,
    Traffic,
    build,
    layouts,
    random_layer,
    random_params,
    random_traffic,
)
from lbq_hw.sim.models.traffic import Stall, never, stalls
from lbq_hw.sim.verilog import ports


def after_room(bench: Bench, array: NeuronArray, stall: Stall = never) -> Stall:
    """Stalls of sums, which come only after a cycle with room."""
    room = bench.probe(room=array.room)["room"]
    return lambda: stall() or not (room and room[-1])


def probe_planes(bench: Bench, array: NeuronArray) -> list[list[int]]:
    """The planes of each cycle, one list per plane, of a compact array."""
    ports: Any = array
    compact = isinstance(array, CompactNeurons)
    planes = {str(k): plane for k, plane in enumerate(ports.planes)} if compact else {}
    return list(bench.probe(**planes).values())


def joined(monitor: Any, late: list[list[int]]) -> list[dict]:
    """What was offered, with the planes that followed it, each in its cycle."""
    if not late:
        return monitor.payloads
    return [
        payload | {"planes": [plane[cycle + 1 + k] for k, plane in enumerate(late)]}
        for cycle, payload in zip(monitor.cycles, monitor.payloads, strict=True)
    ]


def run_array(
    array: NeuronArray, traffic: Traffic, rate: float = 0.0
) -> tuple[Any, Any, list[int], dict[str, list[int]]]:
    """Drive the traffic, check what comes out; driver and monitor, cycles of logits, all seen."""
    bench = Bench(array)
    bench.hold((array.layer, traffic.layer))
    stall = after_room(bench, array, stalls(1, rate))
    taken = bench.drive(array.i_sum, traffic.sums, stall=stall)
    bench.drive(array.i_step, traffic.steps)
    planes = bench.monitor(array.o_planes, len(traffic.planes))
    payload = array.o_logits.payload
    values = {f"v{i}": payload[i] for i in range(len(payload))}
    seen = bench.probe(valid=array.o_logits.valid, busy=array.busy, **values)
    late = probe_planes(bench, array)
    bench.run(extra=60)
    assert joined(planes, late) == traffic.planes
    cycles = [cycle for cycle, valid in enumerate(seen["valid"]) if valid]
    assert [[seen[name][cycle] for name in values] for cycle in cycles] == traffic.logits
    return taken, planes, cycles, seen


STANDARD: list[dict] = [
    {"lanes": 8, "units": 2, "planes": 3, "decay_bits": 1},
    {"lanes": 4, "units": 4, "planes": 1, "decay_bits": 0},
    {"lanes": 4, "units": 1, "planes": 5, "decay_bits": 4},
    {"lanes": 4, "units": 2, "planes": 6, "decay_bits": 1},
]
SIZES = STANDARD + [sizes | {"profile": Profile.COMPACT} for sizes in STANDARD]


def with_kinds(all_sizes: list[dict], kinds: dict[str, dict] = LAYERS) -> pytest.MarkDecorator:
    """Every array with every kind of layer; the slow tests have most of them, the others each array
    and each kind at least once.
    """
    share = min(len(all_sizes), len(kinds))
    return pytest.mark.parametrize(
        ("sizes", "kind"),
        [
            pytest.param(
                sizes,
                kinds[name],
                id=f"{name}-{sizes}",
                marks=[pytest.mark.slow] if (row + column) % share else [],
            )
            for row, sizes in enumerate(all_sizes)
            for column, name in enumerate(kinds)
        ],
    )


@with_kinds(SIZES)
def test_levels_and_logits_equal_golden_under_random_stalls(sizes: dict, kind: dict) -> None:
    source = random.Random(f"{sizes}{kind}")
    params = random_params(source, sizes["lanes"])
    shape = {name: sizes[name] for name in ("lanes", "units", "planes")}
    traffic = random_traffic(source, random_layer(source, sizes, kind), params, **shape)
    run_array(build(**sizes, params=params), traffic, rate=0.3)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_without_resets_the_threshold_is_subtracted(sizes: dict) -> None:
    source = random.Random(str(sizes))
    params = random_params(source, sizes["lanes"])
    shape = {name: sizes[name] for name in ("lanes", "units", "planes")}
    golden = params.copy()
    golden[2] = params[1]  # resets are not looked at
    layer = random_layer(source, sizes, LAYERS["several timesteps"])
    traffic = random_traffic(source, layer, golden, **shape)
    run_array(build(**sizes, params=params, resets=False), traffic, rate=0.3)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_an_array_without_optional_rules_subtracts_alone(sizes: dict) -> None:
    source = random.Random(str(sizes))
    params = random_params(source, sizes["lanes"])[:3]
    shape = {name: sizes[name] for name in ("lanes", "units", "planes")}
    layer = random_layer(source, sizes, LAYERS["several timesteps"])
    traffic = random_traffic(source, layer, params, **shape)
    traffic.layer = {k: v for k, v in traffic.layer.items() if k != TO_ZERO.name}
    run_array(build(**sizes, params=params, rules=(SUBTRACT,)), traffic, rate=0.3)


@with_kinds(SIZES, {name: kind for name, kind in LAYERS.items() if "timesteps" not in kind})
@pytest.mark.parametrize("readout", [False, True])
def test_one_timestep_needs_no_membranes(sizes: dict, kind: dict, readout: bool) -> None:
    source = random.Random(f"{sizes}{kind}")
    params = random_params(source, sizes["lanes"])
    shape = {name: sizes[name] for name in ("lanes", "units", "planes")}
    layer = random_layer(source, sizes, kind | {"readout": readout})
    traffic = random_traffic(source, layer, params, **shape)
    array = build(**sizes, params=params, timesteps=1)
    taken, _, logits, _ = run_array(array, traffic)
    if readout:
        assert logits[0] == taken.cycles[0] + array.logits_latency
    assert len(logits) == len(traffic.logits)


def steady(sizes: dict, kind: dict) -> tuple[NeuronArray, Traffic]:
    source = random.Random(11)
    params = random_params(source, sizes["lanes"])
    shape = {name: sizes[name] for name in ("lanes", "units", "planes")}
    traffic = random_traffic(source, random_layer(source, sizes, kind), params, **shape)
    return build(**sizes, params=params), traffic


@with_kinds(SIZES)
def test_steps_updates_and_planes_come_as_soon_as_they_can(sizes: dict, kind: dict) -> None:
    array, traffic = steady(sizes, kind)
    taken, planes, _, seen = run_array(array, traffic)
    steps, collected = [], []
    began, layer = -100, traffic.layer
    for step in traffic.steps:
        # While the last group of the update before is sent; if it is the only one, a cycle later.
        ready = began + max(1, array.groups - 1) if steps else taken.cycles[0]
        steps.append(ready)
        emits = step["pool_last"] and not layer["readout"]
        for update in range(layer["updates"]):
            apart = [array.groups]
            apart += [array.loop] * bool(update or not step["first_t"])
            apart += [layer["planes"]] * bool(emits)
            began = max(began + max(apart), ready + 1)
            collected += [began + array.latency - 1] * bool(emits)
    assert taken.cycles == steps
    assert planes.cycles == collected
    busy = [cycle for cycle, bit in enumerate(seen["busy"]) if bit]
    last = began + array.latency - 1
    # Planes are offered a cycle after they were collected, if not compact; a readout has none.
    assert busy == list(range(steps[0] + 1, last + (bool(collected) or array.OFFER == 0)))


@with_kinds(STANDARD)
def test_partial_sums_cost_four_cycles_in_all(sizes: dict, kind: dict) -> None:
    plain, traffic = steady(sizes, kind)
    array = build(**sizes, partial_words=8 * plain.groups)
    assert (array.latency, array.logits_latency) == (plain.latency + 4, plain.logits_latency + 4)
    params = random_params(random.Random(11), sizes["lanes"])
    array = build(**sizes, params=params, partial_words=8 * plain.groups)
    before, after = run_array(plain, traffic), run_array(array, traffic)
    assert after[0].cycles == before[0].cycles
    assert after[1].cycles == [cycle + 4 for cycle in before[1].cycles]
    assert after[2] == [cycle + 4 for cycle in before[2]]
    busy = ones(before[3]["busy"])
    assert ones(after[3]["busy"]) == [*busy, *range(busy[-1] + 1, busy[-1] + 5)]


class Parts:
    """Runs layers one after the other: each begins when all of the one before is done."""

    def __init__(self, array: NeuronArray, layers: list[dict], steps: int) -> None:
        self.array, self.layers, self.steps = array, layers, steps
        self.samples = [array.i_sum.valid, array.busy]
        self.begins: list[int] = []
        self.taken = self.quiet = 0
        self.now = -1

    @property
    def done(self) -> bool:
        return len(self.begins) == len(self.layers)

    @property
    def open(self) -> bool:
        """More sums of this layer may come."""
        return bool(self.begins) and self.begins[-1] < self.now and self.taken < self.steps

    def set(self, ctx: Any) -> None:
        self.now += 1
        ready = not self.begins or (self.taken == self.steps and self.quiet > 1)
        begin = ready and not self.done
        if begin:
            ctx.set(self.array.layer, self.layers[len(self.begins)])
            self.begins.append(self.now)
            self.taken = 0
        ctx.set(self.array.begin, begin)

    def see(self, cycle: int, valid: int, busy: int) -> None:
        del cycle
        self.taken += valid
        self.quiet = 0 if busy or valid else self.quiet + 1


@with_kinds(STANDARD)
@pytest.mark.parametrize("rate", [0, 0.3])
def test_sums_in_parts_give_what_the_whole_sums_give(sizes: dict, kind: dict, rate: float) -> None:
    plain, traffic = steady(sizes, kind)
    count, groups = len(traffic.steps), plain.groups
    params = random_params(random.Random(11), sizes["lanes"])
    array = build(**sizes, params=params, partial_words=count * groups)
    source = random.Random(7)
    parts = [[[source.randrange(-300, 300) for _ in total] for total in traffic.sums]
             for _ in range(2)]  # fmt: skip
    rest = [[total - a - b for total, a, b in zip(*each, strict=True)]
            for each in zip(traffic.sums, *parts, strict=True)]  # fmt: skip
    whole = traffic.layer
    left = whole | {"updates": 1, "partial_out": 1}
    layers = [left, left | {"partial_in": 1}, whole | {"partial_in": 1}]
    bench = Bench(array)
    run = bench.add(Parts(array, layers, count))
    stall = after_room(bench, array, stalls(1, rate))
    taken = bench.drive(
        array.i_sum, [*parts[0], *parts[1], *rest], stall=lambda: not run.open or stall()
    )
    bench.drive(array.i_step, traffic.steps * 3)
    planes = bench.monitor(array.o_planes, len(traffic.planes))
    payload = array.o_logits.payload
    values = {f"v{i}": payload[i] for i in range(len(payload))}
    seen = bench.probe(valid=array.o_logits.valid, **values)
    bench.run(extra=60)
    assert planes.payloads == traffic.planes
    logits = [[seen[name][cycle] for name in values] for cycle in ones(seen["valid"])]
    assert logits == traffic.logits
    if not rate:
        # Steps that leave their sums follow each other as fast as groups can be sent.
        first = taken.cycles[:count]
        assert first == [first[0] + max(2, groups) * i for i in range(count)]


@pytest.mark.parametrize("sizes", [SIZES[0], SIZES[4]], ids=str)
def test_logits_follow_one_group_per_cycle(sizes: dict) -> None:
    array, traffic = steady(sizes, {"readout": True})
    taken, _, logits, _ = run_array(array, traffic)
    first = taken.cycles[0] + array.logits_latency
    assert logits == list(range(first, first + len(traffic.logits)))


@pytest.mark.parametrize("sizes", [SIZES[0], SIZES[4]], ids=str)
def test_written_parameters_are_used_and_values_without_enable_keep_theirs(sizes: dict) -> None:
    source = random.Random(4)
    old, new = random_params(source, sizes["lanes"]), random_params(source, sizes["lanes"])
    array = build(**sizes, params=old)
    count = len(old) * sizes["units"]
    enables = [source.getrandbits(count) for _ in range(TILES * array.groups)]
    bits = np.array([[enable >> i & 1 for i in range(count)] for enable in enables], bool)
    merged = np.where(bits, new.T.reshape(-1, count), old.T.reshape(-1, count))
    mask = (1 << MEMBRANE_BITS) - 1
    writes = [
        {
            "addr": i,
            "en": enable,
            "data": sum(
                (int(value) & mask) << MEMBRANE_BITS * j
                for j, value in enumerate(new.T.reshape(-1, count)[i])
            ),
        }
        for i, enable in enumerate(enables)
    ]
    shape = {name: sizes[name] for name in ("lanes", "units", "planes")}
    layer = random_layer(source, sizes, {"timesteps": 2})
    traffic = random_traffic(source, layer, merged.reshape(-1, len(old)).T, **shape)
    bench = Bench(array)
    bench.hold((array.layer, traffic.layer))
    port = array.params
    script = bench.script({"addr": port.addr, "en": port.en, "data": port.data.as_value()}, writes)
    stall = after_room(bench, array, lambda: not script.done)
    bench.drive(array.i_sum, traffic.sums, stall=stall)
    bench.drive(array.i_step, traffic.steps)
    planes = bench.monitor(array.o_planes, len(traffic.planes))
    late = probe_planes(bench, array)
    bench.run(extra=sizes["planes"])
    assert joined(planes, late) == traffic.planes


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"lanes": 6}, ValueError, "lanes must be a power of two, not 6"),
        ({"units": 16}, ValueError, "units must be at most the 8 lanes, not 16"),
        ({"acc_bits": 0}, ValueError, "acc_bits must be at least 1, not 0"),
        ({"membrane_bits": 2}, ValueError, "membrane_bits must be at least planes, not 2"),
        ({"timesteps": None}, TypeError, "timesteps must be an integer, not None"),
        ({"tiles": 0}, ValueError, "tiles must be at least 1, not 0"),
        ({"layer": None}, TypeError, "layer must be a LayerInfo, not None"),
        ({"step": 5}, TypeError, "step must be a StepInfo, not 5"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(change: dict, error: type, text: str) -> None:
    layer, step = layouts(lanes=8, planes=3, decay_bits=1)
    sizes = {"lanes": 8, "units": 2, "acc_bits": 12, "membrane_bits": 20}
    sizes |= {"timesteps": 4, "tiles": 2, "layer": layer, "step": step}
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        NeuronArray(**sizes | change)


def test_partial_sums_need_a_layer_that_has_them() -> None:
    layer, step = layouts(lanes=8, planes=3, decay_bits=1)
    sizes = {"lanes": 8, "units": 2, "acc_bits": 12, "membrane_bits": 20}
    sizes |= {"timesteps": 4, "tiles": 2, "layer": layer, "step": step}
    with pytest.raises(TypeError, match=r"^layer must be a PassInfo, not "):
        PartialNeurons(**sizes, partial_words=8, partial_bits=8)


@pytest.mark.parametrize("sizes", [*SIZES[:2], SIZES[4]], ids=str)
def test_the_array_converts_to_verilog_without_a_product(
    sizes: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    array = build(**sizes)
    text = verilog.convert(array, ports=ports(array))
    assert "o_planes__payload" in text
    assert " * " not in text.replace("(* ", "").replace(" *)", "")
