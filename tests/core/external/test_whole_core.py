# amaranth: UnusedElaboratable=no
"""Networks from a tape in the whole core: equal to golden, in the cycles of `lbq_hw.cycles`."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator
from core.external.whole_core import Bench
from core.test_accelerator import access
from tapes import drawn

from lbq_hw import cycles, golden
from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.compiler import Program, compile_network
from lbq_hw.core.accelerator import accelerator
from lbq_hw.isa import LAYER, Error, regions, tape
from lbq_hw.isa.regions import Region
from lbq_hw.network import Network
from lbq_hw.sim.drawn.networks import random_images

LIMIT = 60_000


def small_tape(seed: int) -> tuple[Network, Program, ReaderTiming]:
    """A random network with more than one pass per layer, and a memory."""
    network, config = drawn(seed)
    timing = ReaderTiming(
        word_bits=config.external, page_words=64, first=5, rest=1, refresh=6, interval=150
    )
    return network, compile_network(network, config, timing=timing), timing


@pytest.mark.parametrize("seed", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 9))])
def test_a_network_on_a_tape_is_exact_in_its_logits_and_cycles(seed: int) -> None:
    network, program, timing = small_tape(seed)
    images = random_images(network, 1, seed)
    wanted = golden.run(network, images, keep="levels")
    levels = {
        layer.name: np.asarray(wanted.traces[layer.name].output)[:, 0]
        for layer in network.layers[:-1]
    }
    predicted = cycles.predict(program, images[0], levels, timing=timing)
    bench = Bench(program, timing, limit=LIMIT)
    # Twice: nothing of a run is left for the next.
    for outcome in bench.run(images[0], [program.tape] * (2 if seed == 3 else 1)):
        assert (outcome.status, outcome.error) == (2, 0)
        assert np.array_equal(outcome.logits, wanted.logits[0])
        assert outcome.cycles == sum(layer.cycles for layer in predicted)
        assert outcome.wait_cycles == sum(layer.wait_cycles for layer in predicted) > 0
        assert outcome.passes == len(program.passes)


def flipped(source: random.Random, data: bytes) -> bytes:
    """The tape with one to three wrong bits."""
    size, wrong = len(data.rstrip(b"\0")), bytearray(data)
    for place in source.sample(range(8 * size), source.randint(1, 3)):
        wrong[place // 8] ^= 1 << place % 8
    return bytes(wrong)


def test_corrupted_tapes_end_in_errors_and_leave_nothing_behind() -> None:
    network, program, timing = small_tape(3)
    [image] = random_images(network, 1, 3)
    wanted = golden.run(network, image[None]).logits[0]
    source = random.Random(0)
    tapes = [flipped(source, program.tape) for _ in range(6)]
    *outcomes, last = Bench(program, timing, limit=LIMIT).run(image, [*tapes, program.tape])
    assert {outcome.status for outcome in outcomes} == {6}
    assert all(outcome.error for outcome in outcomes)
    assert (last.status, last.error) == (2, 0)
    assert np.array_equal(last.logits, wanted)


def changed(program: Program, number: int, **fields: int) -> bytes:
    """The tape with other fields in the LAYER record of a pass; CRCs are right."""
    config, items, passes = program.config, list(tape.decode(program.config, program.tape)), 0
    for index, item in enumerate(items):
        passes += item.address == tape.PASS
        if item.address >> regions.SHIFT == Region.LAYERS and passes == number:
            word = sum(value << 32 * i for i, value in enumerate(item.payload))
            word = LAYER.encode(config, LAYER.decode(config, word) | fields)
            payload = tuple(word >> 32 * i & 0xFFFFFFFF for i in range(len(item.payload)))
            items[index] = replace(item, payload=payload)
    return tape.encode(config, items)


@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_passes_that_ask_for_too_much_end_in_errors_with_their_place(count: int) -> None:
    network, program, timing = small_tape(1)  # passes 0 to 2 leave their sums to pass 3
    [image] = random_images(network, 1, 1)
    beyond = {"out_base": program.config.plane_words - 1}
    wide = dict.fromkeys(("columns_last", "conv_columns_last"), program.config.side - 1)
    tapes = {
        (Error.PARTIAL, 1): changed(program, 1, **wide),
        # A pass that leaves its sums writes nothing.
        (Error.NONE, 0): changed(program, 1, **beyond),
        (Error.PLANE, 3 % program.config.layers): changed(program, 3, **beyond),
        (Error.ORDER, 2): changed(program, 1, last=1),
        (Error.ORDER, 7): changed(program, 6, last=0),
    }
    outcomes = Bench(program, timing, limit=LIMIT).run(image, list(tapes.values())[:count])
    assert [(one.error, one.error_at) for one in outcomes] == list(tapes)[:count]
    wanted = golden.run(network, image[None]).logits[0]
    assert np.array_equal(outcomes[1].logits, wanted)


def test_a_memory_that_is_not_calibrated_ends_the_run_at_once() -> None:
    network, program, timing = small_tape(3)
    [image] = random_images(network, 1, 3)
    bench = Bench(program, timing, limit=20)
    bench.calibrated = False
    [outcome] = bench.run(image, [program.tape])
    assert (outcome.status, outcome.error, outcome.error_at) == (6, Error.MEMORY, 0)
    assert outcome.cycles == 0


@pytest.mark.parametrize("region", tape.WRITTEN)
def test_the_host_must_not_write_what_the_tape_writes(region: Region) -> None:
    _, program, _ = small_tape(3)
    core = accelerator(program.config)(program.config)
    found = []

    async def host(ctx: Any) -> None:
        await access(ctx, core.port, regions.address(program.config, region, 0), 1)
        found.append(await access(ctx, core.port, regions.REGISTERS["error"].address))

    simulator = Simulator(core)
    simulator.add_clock(1e-6)
    simulator.add_testbench(host)
    simulator.run()
    assert found == [Error.ADDRESS]
