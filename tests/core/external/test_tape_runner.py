# amaranth: UnusedElaboratable=no
"""A tape in time: words, writes, passes and the end in the cycles of `lbq_hw.cycles.schedule`."""

from __future__ import annotations

import random

import pytest
from core.external.tape_bench import (
    CORE,
    TIMINGS,
    Memory,
    Walks,
    Writes,
    expected_words,
    random_items,
    words_of,
    write,
)
from core.harness import Bench

from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.config import CoreConfig
from lbq_hw.core.external.tape_runner import TapeRunner
from lbq_hw.cycles.schedule import TOLD, Item, Schedule
from lbq_hw.isa import PARAM, Error, regions, tape
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import TapeItem

START = 4  # cycle of the start


def play(
    config: CoreConfig, data: bytes, durations: list[int], timing: ReaderTiming
) -> tuple[Memory, Walks, Writes]:
    """A tape, run; cycles of the memory count from the start, others from START on."""
    block = TapeRunner(config)
    bench = Bench(block)
    words = words_of(data, timing.word_bits)
    memory = bench.add(Memory(block.i, block.start, words, timing))
    walks = bench.add(Walks(block, durations))
    writes = bench.add(Writes(block))
    bench.script({"start": block.start}, [{}] * START + [{"start": 1}])
    bench.run(extra=5)
    return memory, walks, writes


def expected_writes(
    config: CoreConfig, items: list[TapeItem], taken: list[int], each: int
) -> list[tuple[int, str, int, int]]:
    """Writes of a legal tape with their cycles, from those in which its words are taken."""
    slices, found, place = regions.slices(config), [], 0
    stored = [PARAM.slots(config)[name] for name in ("bias", "theta", "reset")]
    for item in items:
        region, row = item.address >> regions.SHIFT, []
        parts = slices.get(Region(region), 1) if region < len(Region) else 1
        part_bits = (parts - 1).bit_length()
        address = item.address & (1 << regions.SHIFT) - 1
        for index, value in enumerate(item.payload):
            cycle = taken[(place + 2 + index + 1) * each - 1] + 2
            entry, part = address >> part_bits, address & (1 << part_bits) - 1
            if region in regions.TABLES:
                found.append((cycle, Region(region).name, address, value))
            elif region in (Region.WEIGHTS, Region.PARAMS):
                row = [*row, value] if part else [value]
                unit = entry % config.units
                here = sum(1 << i for i, slot in enumerate(stored) if slot.last_slice == part)
                if part == parts - 1 and region == Region.WEIGHTS:
                    used = regions.weight_slice_lanes(config) * config.weight_bits
                    mask = (1 << used) - 1
                    whole = sum((v & mask) << i * used for i, v in enumerate(row))
                    found.append((cycle + 1, "WEIGHTS", entry, whole))
                elif region == Region.PARAMS and here:
                    found.append((cycle, f"PARAMS {here << 3 * unit:x}", entry // config.units, 0))
            address = (entry + 1) << part_bits if part == parts - 1 else address + 1
        place += 3 + len(item.payload)
    return sorted(found)


@pytest.mark.parametrize("number", range(len(TIMINGS)))
@pytest.mark.parametrize("seed", range(3))
def test_everything_happens_in_the_cycles_of_the_schedule(number: int, seed: int) -> None:
    source, timing = random.Random(10 * number + seed), TIMINGS[number]
    config = CORE.with_(external=timing.word_bits, membrane_bits=source.choice([20, 32]))
    durations = [source.choice([1, 5, 90, 700]) for _ in range(8)]
    items = random_items(source, config, len(durations))
    data = tape.encode(config, items)
    memory, walks, writes = play(config, data, durations, timing)

    whole = [tape.head(config, 0), *items, TapeItem(address=tape.END)]
    taken, begins, end = expected_words(whole, durations, timing)
    assert memory.taken[: len(taken)] == taken  # the rest is forgotten
    assert [cycle - START for cycle in walks.begins] == begins
    assert walks.finished is not None
    assert (walks.finished - START, walks.error) == (end, (0, 0))
    schedule, passes = Schedule(timing), iter(durations)
    for item in whole[:-1]:
        if item.address == tape.PASS:
            schedule.run(next(passes))
        else:
            schedule.write(Item(slices=len(item.payload), after=item.after))
    assert [e - d for e, d in zip(schedule.ends, durations, strict=True)] == begins
    assert schedule.finish() == end + TOLD
    found = [
        (cycle - START, name, at, 0 if name.startswith("PARAMS") else value)
        for cycle, name, at, value in writes.found
    ]
    assert sorted(found) == expected_writes(config, whole, taken, timing.words_per_slice)


PASS = TapeItem(address=tape.PASS)
ORDER = {
    "an item waits for a pass that comes after it": (
        [write(Region.RUNS, 0, 0, 1, 1), PASS],
        [9],
        0,
    ),
    "an item waits for a pass that never comes": ([PASS, write(Region.RUNS, 0, 0, 1, 2)], [9], 1),
    "END before the last pass": ([PASS, PASS], [9, 9, 9], 2),
    "END before any pass": ([], [9], 0),
    "PASS after the last pass": ([PASS, PASS, PASS], [9, 9], 2),
    "PASS long after the last pass": ([PASS, write(Region.RUNS, 0, 0, 9), PASS], [1], 1),
    "an item waits for a pass after the last": (
        [PASS, PASS, write(Region.RUNS, 0, 0, 1, 3)],
        [9, 99],
        2,
    ),
}


@pytest.mark.parametrize("name", ORDER)
def test_tape_and_passes_that_wait_for_each_other_end_in_order(name: str) -> None:
    items, durations, done = ORDER[name]
    data = tape.encode(CORE, items)
    _, walks, _ = play(CORE, data, durations, TIMINGS[0])
    assert walks.error == (Error.ORDER, done)


@pytest.mark.parametrize("bit", [0, 77, 16 * 32 + 5, 24 * 32 + 31])
def test_a_wrong_payload_ends_in_crc_with_the_passes_that_were_done(bit: int) -> None:
    items = [PASS, PASS, write(Region.WEIGHTS, 0, 0, 24, 1), PASS]
    data = bytearray(tape.encode(CORE, items))
    place = 8 * 4 * (6 + 3 + 3 + 2) + bit
    data[place // 8] ^= 1 << place % 8
    _, walks, _ = play(CORE, bytes(data), [5, 4000, 5], TIMINGS[0])
    assert walks.error == (Error.CRC, 1)


@pytest.mark.parametrize(
    "seed", [*range(15), *(pytest.param(n, marks=pytest.mark.slow) for n in range(15, 60))]
)
def test_a_tape_with_wrong_bits_ends_in_an_error(seed: int) -> None:
    source, timing = random.Random(seed), TIMINGS[seed % len(TIMINGS)]
    config = CORE.with_(external=timing.word_bits)
    items = random_items(source, config, 3)
    data = bytearray(tape.encode(config, items))
    size = 4 * (9 + sum(3 + len(item.payload) for item in items))
    for place in source.sample(range(8 * size), source.randint(1, 3)):
        data[place // 8] ^= 1 << place % 8
    _, walks, _ = play(config, bytes(data), [30, 200, 10], timing)
    assert walks.error is not None
    assert walks.error[0] in (Error.TAPE, Error.CRC, Error.ORDER)
