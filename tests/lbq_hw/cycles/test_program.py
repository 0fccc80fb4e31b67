"""Cycles of passes and their waits: events of the interpreter, and the reader stepped by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest
from full_levels import full_levels
from tapes import compiled, drawn, residual_network

from lbq_hw import golden, interpreter
from lbq_hw.chips.timing import ReaderTiming, default_timing
from lbq_hw.compiler import Program, compile_network
from lbq_hw.cycles import most_cycles, predict
from lbq_hw.cycles.program import pass_cycles, wait_cycles
from lbq_hw.cycles.stages import Neurons, NeuronTiming
from lbq_hw.golden.counts import Counter
from lbq_hw.isa import tape
from lbq_hw.sim.drawn.cores import external_core
from lbq_hw.sim.drawn.networks import random_images


@pytest.mark.parametrize("seed", range(25))
def test_events_of_the_passes_are_those_of_the_interpreter(seed: int) -> None:
    network, config = drawn(seed)
    program = compiled(network, config)
    raw = random_images(network, 1, seed)
    done, counter = interpreter.run(program, raw[0], seed=seed), Counter(network)
    golden.run(network, raw, observe=counter)
    found = predict(program, raw[0], done.levels)
    for layer, work, counted, net in zip(
        found, done.work, counter.counts().layers, network.layers, strict=True
    ):
        assert layer.null_events == work.nulls
        if not config.pairs:
            assert layer.events == work.events
        else:
            assert work.events <= 2 * layer.events <= 2 * work.events
        assert layer.scanner_stalls is not None
        assert layer.neuron_stalls is not None
        waits = layer.scanner_stalls + layer.neuron_stalls
        assert layer.cycles == layer.events + layer.null_events + waits
        assert layer.scanner_stalls >= layer.wait_cycles
        assert layer.cycles == layer.wait_cycles + layer.overhead + max(layer.bounds.values())
        # A max-pool may leave out pixels, which the network's counts have all the same.
        gaps = net.pool is not None and any(
            s > k for s, k in zip(net.pool.stride, net.pool.kernel, strict=True)
        )
        if gaps:
            assert layer.acs <= counted.work.bit_sparse
        else:
            assert layer.acs == counted.work.bit_sparse


class Words:
    """The memory controller and its FIFO, stepped cycle by cycle."""

    def __init__(self, timing: ReaderTiming) -> None:
        self.timing = timing
        self.busy = self.pending = self.taken = self.pages = 0
        self.arrivals: list[int] = []

    def step(self, cycle: int) -> bool:
        """Whether a word can be taken in this cycle."""
        timing = self.timing
        self.pending += cycle > 0 and cycle % timing.interval == 0
        held = self.pages - self.taken // timing.page_words
        if cycle >= self.busy and self.pending:
            self.pending -= 1
            self.busy = cycle + timing.refresh
        elif cycle >= self.busy and held < timing.fifo_pages:
            self.pages += 1
            first = cycle + timing.first
            self.arrivals += range(first, first + timing.page_words)
            self.busy = first + timing.page_words + timing.rest
        return self.taken < len(self.arrivals) and self.arrivals[self.taken] <= cycle


def stepped(program: Program, cycles: list[int], timing: ReaderTiming) -> tuple[int, int]:
    """Cycles in which the walker waited for PASS, and the cycle in which the inference is done.

    The reader of docs/external-memory.md, one cycle after the other.
    """
    words, per_slice = Words(timing), timing.words_per_slice
    items = [tape.head(program.config, 0), *tape.decode(program.config, program.tape)]
    items.append(tape.TapeItem(address=tape.END))
    number, state, left, may_take = 0, "head", 2 * per_slice, 1
    allowed_from: list[int] = []  # cycles from which PASS number n has its effect
    dones: list[int] = []  # cycles in which passes are done
    running_until, ended_from, waited, cycle = None, None, 0, 0
    while True:
        # The walker.
        if running_until == cycle:
            dones.append(cycle)
            running_until = None
        if running_until is None and len(dones) < len(cycles):
            begun = len(dones)
            if begun < len(allowed_from) and allowed_from[begun] <= cycle:
                running_until = cycle + cycles[begun]
            else:
                waited += 1
        if len(dones) == len(cycles) and ended_from is not None and ended_from <= cycle:
            return waited, cycle + 1  # in which the host is told
        # The reader: at most one word per cycle.
        there = words.step(cycle)
        item = items[number] if number < len(items) else None
        if item is not None and there and cycle >= may_take:
            open_gate = (
                state == "head"
                or not item.after
                or (len(dones) >= item.after and dones[item.after - 1] < cycle)
            )
            if open_gate:
                words.taken += 1
                left -= 1
                if not left and state == "head":
                    state, left = "body", (len(item.payload) + 1) * per_slice
                    may_take = cycle + 2
                elif not left:
                    if item.address == tape.PASS:
                        allowed_from.append(cycle + 2)
                    if item.address == tape.END:
                        ended_from = cycle + 2
                    number, state, left, may_take = number + 1, "head", 2 * per_slice, cycle + 2
        cycle += 1


@pytest.mark.parametrize("seed", range(16))
def test_waits_are_those_of_the_reader_stepped_cycle_by_cycle(seed: int) -> None:
    draw = random.Random(seed)
    network, config = drawn((5, 10, 17, 18)[seed % 4])
    timing = ReaderTiming(
        word_bits=config.external,
        page_words=draw.choice([8, 32, 64]),
        fifo_pages=draw.choice([1, 2, 3]),
        first=draw.randint(0, 9),
        rest=draw.randint(0, 3),
        refresh=draw.randint(1, 10),
        interval=draw.randint(40, 90),
    )
    program = compile_network(network, config, timing=timing)
    raw = random_images(network, 1, seed)[0]
    levels = interpreter.run(program, raw).levels
    cycles = [one.cycles for one in pass_cycles(program, raw, levels)]
    waits, end = wait_cycles(program, cycles, timing)
    waited, done = stepped(program, cycles, timing)
    assert sum(waits) == waited
    assert sum(cycles) + sum(waits) + end == done
    found = predict(program, raw, levels, timing=timing)
    assert sum(layer.cycles for layer in found) == done
    assert sum(layer.wait_cycles for layer in found) == waited


@pytest.mark.parametrize("seed", range(25))
def test_no_image_takes_longer_than_the_most_cycles_of_a_tape(seed: int) -> None:
    network, config = drawn(seed)
    program = compiled(network, config)
    white = np.full_like(random_images(network, 1)[0], 255)
    found, most = predict(program, white, full_levels(program)), most_cycles(program)
    for layer, limit in zip(found, most, strict=True):
        assert layer.cycles <= limit


def test_partial_sums_cost_four_cycles_of_depth_and_no_more() -> None:
    network = residual_network()
    config = external_core(network, 1, lanes=8, weight_rows=32)
    without = NeuronTiming.of(config.with_(external=0, pairs=0, partial_words=0, partial_bits=0))
    timing = NeuronTiming.of(config)
    assert (timing.groups, timing.loop) == (without.groups, without.loop)
    assert timing.depth == without.depth + 4


def test_a_pass_that_leaves_its_sums_takes_steps_as_fast_as_it_has_groups() -> None:
    timing = NeuronTiming(groups=4, loop=9, depth=6)
    units = Neurons(timing, updates=3, planes=7, readout=False, leaves=True)
    taken = [units.take(10, first=number == 0, emits=True) for number in range(4)]
    assert taken == [10, 14, 18, 22]
    assert units.idle() == 23 + timing.groups + timing.depth


def test_a_layer_that_waits_most_is_limited_by_memory() -> None:
    network = residual_network()
    program = compiled(network, external_core(network, 1, lanes=8, weight_rows=512))
    raw = np.zeros_like(random_images(network, 1)[0])
    slow = ReaderTiming(word_bits=program.config.external, page_words=8, first=200)
    found = predict(program, raw, interpreter.run(program, raw).levels, timing=slow)
    assert {layer.limit for layer in found} == {"memory"}
    assert found[1].summary(8)["bounds"]["memory"] == found[1].wait_cycles


def test_a_default_timing_has_the_width_of_the_memory() -> None:
    assert [default_timing(bits).word_bits for bits in (16, 32)] == [16, 32]
