# amaranth: UnusedElaboratable=no
"""MemoryAccess, cycle by cycle, and with a memory that takes its time."""

from __future__ import annotations

import struct
import zlib

import pytest
from core.harness import Bench, ones

from lbq_hw.core.external.memory_access import MemoryAccess
from lbq_hw.isa import regions
from lbq_hw.sim.models.slice_memory import SliceMemory

FIRST, COUNT, LAST, CAPTURES = (
    regions.MEMORY_REGISTERS[name].address
    for name in ("digest_first", "digest_slices", "test_last", "captures")
)
IN = ("read", "write", "set", "addr", "data")
CALIBRATED, DIGESTS, FAILED, TESTS = 1, 2, 4, 8


def run(
    script: list[dict[str, int]], words: dict[int, int], *, seed: int | None = None, extra: int = 40
) -> tuple[SliceMemory, dict[str, list[int]]]:
    access = MemoryAccess()
    bench = Bench(access)
    memory = bench.add(SliceMemory(access.memory, words, seed=seed))
    bench.hold((access.calibrated, 1))
    bench.script({name: getattr(access, name) for name in IN}, script)
    seen = bench.probe(
        pending=access.pending,
        answered=access.answered,
        answer=access.answer,
        in_use=access.in_use,
        **{name: access.values[name] for name in ("memory", "digest_crc", "test_differing")},
    )
    bench.run(extra=extra)
    return memory, seen


def test_a_write_is_offered_in_the_next_cycle_and_pending_until_it_is_taken() -> None:
    memory, seen = run([{}, {"write": 1, "addr": 77, "data": 0xABCD1234}], {})
    assert memory.requests == [(2, 77, 1)]
    assert memory.words == {77: 0xABCD1234}
    assert ones(seen["pending"]) == [2]
    assert not any(seen["answered"])


def test_a_read_is_answered_in_the_cycle_after_the_memory_answers() -> None:
    memory, seen = run([{}, {"read": 1, "addr": 5, "data": 9}], {5: 0xFEEDF00D})
    assert memory.requests == [(2, 5, 0)]  # the memory answers in cycle 3
    assert ones(seen["answered"]) == [4]
    assert seen["answer"][4] == 0xFEEDF00D
    assert ones(seen["pending"]) == [2, 3, 4]
    assert memory.words == {5: 0xFEEDF00D}


@pytest.mark.parametrize("seed", range(6))
def test_a_slow_memory_is_waited_for(seed: int) -> None:
    memory, seen = run([{"read": 1, "addr": 5}], {5: 0xFEEDF00D}, seed=seed)
    [(taken, _, _)] = memory.requests
    [answered] = ones(seen["answered"])
    assert answered >= taken + 2
    assert seen["answer"][answered] == 0xFEEDF00D
    assert ones(seen["pending"]) == list(range(1, answered + 1))


@pytest.mark.parametrize("seed", [None, *range(4)])
def test_a_digest_reads_its_slices_and_no_answer_is_the_hosts(seed: int | None) -> None:
    words = {100 + i: 0x01010101 * i for i in range(9)}
    script = [{"set": 1, "addr": FIRST, "data": 102}, {}, {"set": 1, "addr": COUNT, "data": 5}]
    memory, seen = run(script, dict(words), seed=seed, extra=150)
    assert [(address, write) for _, address, write in memory.requests] == [
        (address, 0) for address in range(102, 107)
    ]
    used = ones(seen["in_use"])
    assert used == list(range(3, used[-1] + 1))
    assert {seen["memory"][cycle] for cycle in used} == {CALIBRATED | DIGESTS}
    assert seen["memory"][used[-1] + 1] == CALIBRATED
    data = struct.pack("<5I", *(words[address] for address in range(102, 107)))
    assert seen["digest_crc"][used[-1] + 1] == zlib.crc32(data)
    assert not any(seen["answered"])
    assert not any(seen["pending"])
    assert memory.words == words


def test_a_test_is_started_in_the_next_cycle_and_in_use_from_then_on() -> None:
    memory, seen = run([{}, {"set": 1, "addr": LAST, "data": 20}], {})
    assert memory.tests == [(2, 20)]
    assert ones(seen["in_use"]) == list(range(2, 3 + memory.test_cycles))
    assert {seen["memory"][cycle] for cycle in ones(seen["in_use"])} == {CALIBRATED | TESTS}
    assert seen["test_differing"][-1] == 0


def test_what_the_memory_tells_of_itself_is_in_the_registers() -> None:
    access = MemoryAccess()
    bench = Bench(access)
    bench.hold((access.memory.failed, 1), (access.memory.test_differing, 0xFFFFFFF0))
    bench.hold((access.memory.captures.passed, 0x3001), (access.memory.captures.used, 13))
    seen = bench.probe(
        captures=access.values.captures.as_value(),
        **{name: access.values[name] for name in ("memory", "test_differing")},
    )
    bench.run()
    assert seen == {"memory": [FAILED], "test_differing": [0xFFFFFFF0], "captures": [0xD3001]}


def test_a_calibration_is_started_in_the_next_cycle() -> None:
    memory, seen = run([{}, {}, {"set": 1, "addr": CAPTURES, "data": 0}], {})
    assert memory.calibrations == [3]
    assert not any(seen["in_use"])


def test_writes_of_other_registers_start_nothing() -> None:
    others = [n for n in range(25) if n not in (FIRST, COUNT, LAST, CAPTURES)]
    memory, seen = run([{"set": 1, "addr": number, "data": 3} for number in others], {})
    assert not memory.requests
    assert not memory.tests
    assert not memory.calibrations
    assert not any(seen["in_use"])
