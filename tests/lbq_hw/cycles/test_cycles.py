# amaranth: UnusedElaboratable=no
"""The cycle model without RTL: against hand counts, event by event, and the interpreter's work."""

from __future__ import annotations

import inspect
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from full_levels import full_levels
from numpy.typing import NDArray

from lbq_hw import golden, interpreter, isa
from lbq_hw.compiler import Program, compile_network, smallest_for
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.core.neurons import compact_unit, partial_sums
from lbq_hw.core.neurons.compact_neurons import CompactNeurons
from lbq_hw.core.neurons.neuron_array import NeuronArray
from lbq_hw.core.scan import scanner
from lbq_hw.core.scan.spread_scanner import SpreadScanner
from lbq_hw.core.walk import layer_loader, path_store, step_infos
from lbq_hw.cycles import (
    BOUNDS,
    LayerCycles,
    model,
    most_cycles,
    predict,
    stages,
)
from lbq_hw.cycles.stages import Lanes, Neurons, NeuronTiming, Scanner
from lbq_hw.golden.counts import Counter
from lbq_hw.isa.regions import COUNTERS
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path
from lbq_hw.sim.drawn.cores import random_core
from lbq_hw.sim.drawn.networks import random_images, random_network

FAST = NeuronTiming(groups=1, loop=4, depth=6)

LATENCY = scanner.Scanner.LATENCY


def first_request(config: CoreConfig, planes: int) -> int:
    """Of a layer with one path, see `Walker`."""
    look = max(isa.PATH.slices(config) + 4, planes + 3)
    return isa.LAYER.slices(config) + 1 + 10 + look


def neurons(timing: NeuronTiming = FAST, **layer: int) -> Neurons:
    return Neurons(timing, **{"updates": 1, "planes": 1, "readout": False} | layer)


def dense(pixels: int, classes: int = 4) -> Network:
    """A readout of `pixels` black or white pixels."""
    weight = np.ones((classes, pixels, 1, 1), np.int8)
    return Network(
        name="dense",
        input=Input(shape=(pixels, 1, 1), static=True, bits=1),
        timesteps=1,
        weight_bits=2,
        layers=(
            Layer(
                name="logits",
                shape=(classes, 1, 1),
                paths=(Path(source=INPUT, weight=weight),),
                bias=np.zeros(classes, np.int64),
                fraction_bits=0,
                neuron=None,
            ),
        ),
    )


def spiking(pixels: int, capacity: int) -> Network:
    """A layer of 4 neurons before the readout of `dense`."""
    network = dense(pixels)
    neuron = Neuron(
        theta=np.full(4, 3, np.int64),
        reset=np.full(4, 3, np.int64),
        decay=1,
        decay_bits=1,
        capacity=capacity,
    )
    hidden = replace(network.layers[0], name="hidden", neuron=neuron)
    readout = replace(
        network.layers[0], paths=(Path(source="hidden", weight=np.ones((4, 4, 1, 1), np.int8)),)
    )
    return replace(network, layers=(hidden, readout))


def activity(program: Program, image: NDArray[np.uint8]) -> tuple[LayerCycles, ...]:
    return predict(program, image, interpreter.run(program, image).levels)


@pytest.mark.parametrize("bits", [0, 1, 30, 100])
@pytest.mark.parametrize("profile", [Profile.COMPACT, Profile.STANDARD])
def test_a_readout_of_one_step_is_counted_by_hand(bits: int, profile: Profile) -> None:
    config = smallest_for(dense(100), lanes=4, word=128, units=2, profile=profile)
    program = compile_network(dense(100), config)
    image = np.where(np.arange(100) < bits, 255, 0).astype(np.uint8).reshape(100, 1, 1)
    (layer,) = activity(program, image)
    timing = NeuronTiming.of(program.config)
    request = first_request(program.config, 1)
    # The end goes with the last event, or alone in its place.
    last = request + LATENCY + max(bits, 1) - 1
    taken = last + 2  # by the lanes, behind the event FIFO
    collected = taken + 3 + timing.groups + timing.depth
    assert layer.cycles == collected + 1
    assert (layer.events, layer.null_events) == (bits, int(bits == 0))
    assert (layer.words, layer.empty_requests) == (bits > 0, bits == 0)
    assert layer.neuron_stalls == 0
    assert layer.scanner_stalls == layer.cycles - max(bits, 1)


def test_a_spread_core_scans_and_adds_later() -> None:
    network = spiking(8, 7)
    near = smallest_for(network, lanes=4, word=8)
    cycles = []
    for config in (near, near.with_(profile=Profile.SPREAD)):
        program = compile_network(network, config)
        found = activity(program, np.full((8, 1, 1), 255, np.uint8))
        cycles.append([layer.cycles for layer in found])
    small, more = cycles
    assert more == [layer + SpreadScanner.LATENCY - LATENCY + 2 for layer in small]


@pytest.mark.parametrize("capacity", [1, 7])
@pytest.mark.parametrize("profile", [Profile.COMPACT, Profile.STANDARD])
def test_a_layer_ends_when_its_planes_are_written(capacity: int, profile: Profile) -> None:
    network = spiking(8, capacity)
    program = compile_network(network, smallest_for(network, lanes=4, word=8, profile=profile))
    timing, planes = NeuronTiming.of(program.config), capacity.bit_length()
    layer = activity(program, np.full((8, 1, 1), 255, np.uint8))[0]
    taken = first_request(program.config, planes) + LATENCY + 8 - 1 + 2
    collected = taken + 3 + timing.groups + timing.depth
    # The writer takes them a cycle later, or at once if the core is compact; it writes from two
    # cycles on, and all is quiet.
    assert layer.cycles == collected + (profile is Profile.STANDARD) + (planes + 1) + 1


def test_dense_words_take_one_cycle_per_event() -> None:
    lanes = Lanes(16, neurons())
    scan = Scanner(lanes)
    taken = [scan.take(0, [8, 8, 8, 8]) for _ in range(4)]
    scan.take(0, [1])
    lanes.end(first=True, emits=True)
    assert taken[:2] == [0, 1]
    assert lanes.sums == [LATENCY + 16 * 8 + 2 + 3]


def test_empty_requests_take_a_cycle_each() -> None:
    lanes = Lanes(16, neurons())
    scan = Scanner(lanes)
    assert [scan.take(0, []) for _ in range(30)] == list(range(30))
    scan.take(0, [1])
    lanes.end(first=True, emits=True)
    assert lanes.sums == [LATENCY + 30 + 2 + 3]


def test_a_step_waits_for_the_groups_of_the_one_before() -> None:
    units = neurons(replace(FAST, groups=10))
    assert [units.take(cycle, first=True, emits=True) for cycle in (5, 6, 40)] == [5, 15, 40]


def test_a_membrane_is_read_when_the_pass_before_has_written_it() -> None:
    units = neurons(updates=3)
    # Three passes 4 cycles apart; the next step is taken when the last is sent.
    assert [units.take(0, first=True, emits=True) for _ in range(2)] == [0, 10]
    units = neurons()
    taken = [units.take(0, first=first, emits=True) for first in (True, False, False, True)]
    assert taken == [0, 2, 6, 10]


def test_a_pass_waits_until_the_planes_before_are_written() -> None:
    units = neurons(planes=5)
    taken = [units.take(0, first=True, emits=True) for _ in range(4)]
    assert taken == [0, 2, 7, 12]
    assert units.idle() == (1 + 3 * 5) + FAST.depth + 1 + 5 + 2


def test_positions_of_a_window_but_the_last_write_nothing() -> None:
    units = neurons(planes=5)
    assert [units.take(0, first=True, emits=False) for _ in range(4)] == [0, 2, 4, 6]


def event_by_event(
    words: list[tuple[int, int, bool]], depth: int, delays: list[int], way: int
) -> tuple[list[int], list[int]]:
    """Cycles in which the words' last events are made, and in which sums are taken.

    As the hardware has it: a register behind the scanner, the FIFO's memory of ``depth - 1`` and
    its output register, then the lanes, which stand still while a sum is ready and not taken.
    """
    made, written, out, taken = [-1], [-1], [-1], [-1]
    stands: set[int] = set()
    lasts: list[int] = []
    sums: list[int] = []

    def moves(cycle: int) -> int:
        while cycle in stands:
            cycle += 1
        return cycle

    for cycle, count, end in words:
        for _ in range(count):
            made.append(max(cycle + 1, made[-1] + 1, written[-1]))
            place = out[-(depth - 1)] if len(out) >= depth else -1
            written.append(max(made[-1], place) + 1)
            out.append(max(written[-1] + 1, taken[-1]))
            taken.append(moves(max(out[-1], taken[-1]) + 1))
        lasts.append(made[-1])
        if end:
            ready = taken[-1]
            for _ in range(way):
                ready = moves(ready + 1)
            ready += 1
            sums.append(ready + delays[len(sums)])
            stands |= set(range(ready, sums[-1]))
    return lasts, sums


class Late(Neurons):
    """Neuron units that take each sum so many cycles after it is ready."""

    def __init__(self, delays: list[int]) -> None:
        self.delays = iter(delays)

    def take(self, ready: int, *, first: bool, emits: bool) -> int:
        del first, emits
        return ready + next(self.delays)


@pytest.mark.parametrize("seed", range(60))
def test_words_at_once_are_as_event_by_event(seed: int) -> None:
    source = random.Random(seed)
    depth, way = source.choice((3, 4, 8, 16, 64)), source.choice((2, 3, 4))
    delays = [source.choice((0, 0, 1, 7, 40)) for _ in range(200)]
    lanes = Lanes(depth, Late(delays), way=way)
    words, lasts, cycle = [], [], 0
    for _ in range(200):
        # A word is loaded when the last event of the one before is made, or later.
        cycle = max(cycle + 1, *lasts[-1:], cycle + source.choice((0, 0, 0, 2, 30)))
        count, end = source.choice((1, 1, 2, 5, 32)), source.random() < 0.3
        words.append((cycle, count, end))
        lasts.append(lanes.word(cycle, count))
        if end:
            lanes.end(first=True, emits=True)
    expected = event_by_event(words, depth, delays, way)
    assert (lasts, lanes.sums) == expected
    assert lanes.stalls == sum(delays[: len(lanes.sums)])


@pytest.mark.parametrize(
    ("seed", "timesteps"), [*((seed, None) for seed in range(20)), (20, 100), (21, 300)]
)
def test_events_are_those_of_the_interpreter_and_acs_those_of_the_counts(
    seed: int, timesteps: int | None
) -> None:
    network = random_network(seed, timesteps=timesteps)
    program = compile_network(network, random_core(network, seed))
    (image,) = random_images(network, 1, seed)
    counter = Counter(network)
    golden.run(network, image[None], observe=counter)
    done = interpreter.run(program, image)
    found = predict(program, image, done.levels)
    for layer, work, counted, net in zip(
        found, done.work, counter.counts().layers, network.layers, strict=True
    ):
        assert (layer.events, layer.null_events) == (work.events, work.nulls)
        waits = layer.scanner_stalls + layer.neuron_stalls
        assert layer.cycles == work.lane_cycles + waits
        assert layer.cycles > max(layer.bounds.values())
        # A max-pool may leave out pixels, which the network's counts have all the same.
        gaps = net.pool is not None and any(
            s > k for s, k in zip(net.pool.stride, net.pool.kernel, strict=True)
        )
        if gaps:
            assert layer.acs <= counted.work.bit_sparse
        else:
            assert layer.acs == counted.work.bit_sparse


@pytest.mark.parametrize("seed", range(40))
def test_no_image_takes_longer_than_the_most_cycles(seed: int) -> None:
    """Even if every bit of every tensor is set, which no network's levels are."""
    network = random_network(seed)
    program = compile_network(network, random_core(network, seed))
    white = np.full_like(random_images(network, 1)[0], 255)
    found, most = predict(program, white, full_levels(program)), most_cycles(program)
    for layer, limit in zip(found, most, strict=True):
        assert layer.cycles <= limit


def test_the_most_cycles_are_a_useful_limit() -> None:
    network = dense(1000)
    program = compile_network(network, smallest_for(network, lanes=4))
    (layer,) = activity(program, np.full((1000, 1, 1), 255, np.uint8))
    (most,) = most_cycles(program)
    assert layer.cycles <= most < 2 * layer.cycles


def test_the_constants_are_those_of_the_core() -> None:
    queues = inspect.signature(scanner.Scanner).parameters
    assert queues["span_queue"].default == stages.SPAN_QUEUE
    assert queues["word_queue"].default == stages.WORD_QUEUE
    assert stages.FAR_CYCLES == SpreadMemory.LATENCY
    assert stages.PARTIAL_CYCLES == partial_sums.LATENCY - 1
    assert stages.PLANES_PER_STAGE == compact_unit.PLANES_PER_STAGE
    assert model.STEPS_AHEAD == step_infos.STEPS_AHEAD
    assert model.SLOTS == path_store.SLOTS


@pytest.mark.parametrize("decay_bits", [0, 1, 2, 8, 15])
@pytest.mark.parametrize(("units", "planes"), [(1, 1), (4, 3), (8, 4), (16, 5)])
@pytest.mark.parametrize("profile", [Profile.COMPACT, Profile.STANDARD])
def test_the_timing_of_the_neuron_units_is_the_cores(
    decay_bits: int, units: int, planes: int, profile: Profile
) -> None:
    config = smallest_for(dense(8), lanes=16).with_(
        decay_bits=decay_bits, units=units, planes=planes, profile=profile
    )
    kind = CompactNeurons if profile is Profile.COMPACT else NeuronArray
    array = kind(
        lanes=16,
        units=units,
        acc_bits=config.acc_bits,
        membrane_bits=32,
        timesteps=4,
        tiles=1,
        layer=layer_loader.layer_layout(config),
        step=step_infos.step_layout(config),
    )
    timing = NeuronTiming.of(config)
    assert (timing.groups, timing.loop) == (array.groups, array.loop)
    assert timing.groups + timing.depth + timing.offer == array.latency


def layer_cycles(**bounds: int) -> LayerCycles:
    counts = dict.fromkeys(COUNTERS, 0) | {"cycles": 100}
    return LayerCycles(name="x", acs=160, bounds=dict.fromkeys(BOUNDS, 0) | bounds, **counts)


def test_the_largest_bound_is_the_limit_unless_overhead_is_more() -> None:
    assert layer_cycles(events=60, scanner=70).limit == "scanner"
    assert layer_cycles(events=60, neurons=20).limit == "events"
    assert layer_cycles(events=30, walker=49).limit == "overhead"
    assert layer_cycles(walker=49).overhead == 51


def test_a_summary_has_means_of_images() -> None:
    both = layer_cycles(events=60) + layer_cycles(events=20, scanner=70)
    summary = both.summary(adders=4, images=2)
    assert {name: summary[name] for name in ("cycles", "acs_bit_sparse", "utilisation")} == {
        "cycles": 100,
        "acs_bit_sparse": 160,
        "utilisation": 0.4,
    }
    assert summary["bounds"] == {
        "events": 40, "scanner": 35, "walker": 0, "neurons": 0, "overhead": 60
    }  # fmt: skip
    assert summary["limit"] == "overhead"


def test_levels_that_are_missing_are_named() -> None:
    network = spiking(8, 1)
    program = compile_network(network, smallest_for(network, lanes=4))
    text = "levels must have those of 'hidden', not only ['other']"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        predict(program, np.zeros((8, 1, 1), np.uint8), {"other": np.zeros(1)})


def test_a_fifo_that_is_too_short_for_the_model_is_refused() -> None:
    text = "fifo_depth must be at least 3 for the cycle model, not 2"
    with pytest.raises(ValueError, match=f"^{text}$"):
        Lanes(2, neurons())
