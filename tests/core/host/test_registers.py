# amaranth: UnusedElaboratable=no
"""Registers, cycle by cycle: the life of a run, the first error, and the counters."""

from __future__ import annotations

import random

import pytest
from core.harness import Bench, ones

from lbq_hw.core.host.registers import Registers, TapeRegisters, registers
from lbq_hw.isa import Error, regions
from lbq_hw.isa.regions import COUNTERS
from lbq_hw.sim.models.programs import SMALL

BUSY, DONE, FAILED = 1, 2, 4
LAYER = 3


def run(script: list[dict], extra: int = 3) -> dict[str, list[int]]:
    """Registers and strobes in every cycle; `ticks` of a step is a packed word."""
    registers = Registers(SMALL)
    bench = Bench(registers)
    names = ("begin", "clear", "refused", "finished", "walk_error", "walk_error_at", "stray")
    signals = {name: getattr(registers, name) for name in names}
    bench.hold((registers.layer, LAYER))
    bench.script(signals | {"ticks": registers.ticks.as_value()}, script)
    values = {name: registers.values[name] for name in regions.REGISTERS}
    seen = bench.probe(start=registers.start, busy=registers.busy, **values)
    bench.run(extra=extra)
    return seen


def at(count: int, **cycles: int | dict) -> list[dict]:
    """A script of so many cycles; ``_5={...}`` drives something in cycle 5."""
    return [dict(cycles.get(f"_{cycle}", {})) for cycle in range(count)]


def test_a_run_is_busy_from_the_cycle_after_begin_to_that_of_finished() -> None:
    seen = run(at(12, _2={"begin": 1}, _7={"finished": 1}))
    assert ones(seen["start"]) == [3]
    assert ones(seen["busy"]) == [3, 4, 5, 6, 7]
    assert seen["status"][:9] == [0, 0, 0, BUSY, BUSY, BUSY, BUSY, BUSY, DONE]
    assert set(seen["status"][8:]) == {DONE}


def test_finished_is_not_looked_at_in_the_cycle_of_start() -> None:
    seen = run(at(9, _2={"begin": 1}, _3={"finished": 1, "walk_error": 6}, _5={"finished": 1}))
    assert ones(seen["busy"]) == [3, 4, 5]
    assert not any(seen["error"])


def test_a_new_run_and_a_clear_forget_that_one_is_done() -> None:
    again = at(12, _0={"begin": 1}, _3={"finished": 1}, _6={"begin": 1}, _9={"finished": 1})
    assert run(again)["status"][4:11] == [DONE, DONE, DONE, BUSY, BUSY, BUSY, DONE]
    cleared = at(9, _0={"begin": 1}, _3={"finished": 1}, _6={"clear": 1})
    assert run(cleared)["status"][4:9] == [DONE, DONE, DONE, 0, 0]


FAILURES = {
    "refused": ({"refused": Error.BUSY.value}, Error.BUSY, LAYER),
    "stray": ({"stray": 1}, Error.WEIGHT, LAYER),
    "walker": ({"finished": 1, "walk_error": Error.RUN.value, "walk_error_at": 11}, Error.RUN, 11),
    "both": ({"finished": 1, "stray": 1, "walk_error": 4, "walk_error_at": 2}, Error.WEIGHT, LAYER),
}


@pytest.mark.parametrize("first", FAILURES)
@pytest.mark.parametrize("second", FAILURES)
def test_the_first_error_is_there_a_cycle_later_and_stays_until_it_is_cleared(
    first: str, second: str
) -> None:
    given, error, where = FAILURES[first]
    other = {name: value for name, value in FAILURES[second][0].items() if name != "finished"}
    seen = run(at(12, _0={"begin": 1}, _4=given, _6=other | {"finished": 1}, _9={"clear": 1}))
    assert seen["error"][:11] == [0] * 5 + [error] * 5 + [0]
    assert seen["error_at"][:11] == [0] * 5 + [where] * 5 + [0]
    assert [status & FAILED for status in seen["status"][:11]] == [0] * 5 + [FAILED] * 5 + [0]


def test_what_a_walker_tells_is_no_error_before_the_end() -> None:
    seen = run(at(8, _0={"begin": 1}, _3={"walk_error": 6}, _5={"finished": 1}))
    assert not any(seen["error"])


def test_ticks_of_a_run_are_in_their_counters_two_cycles_later() -> None:
    source = random.Random(1)
    begin, end, clear = 3, 60, 70
    script = [{"ticks": source.getrandbits(len(COUNTERS))} for _ in range(80)]
    script[begin]["begin"] = script[end]["finished"] = script[clear]["clear"] = 1
    seen = run(script, extra=0)
    # Not in the cycle of `start`.
    counted = range(begin + 2, end + 1)
    for place, name in enumerate(COUNTERS):
        ticks = [script[cycle]["ticks"] >> place & 1 for cycle in range(80)]
        totals = [
            sum(ticks[c] for c in counted if c <= cycle - 2) if cycle <= clear else 0
            for cycle in range(80)
        ]
        assert seen[name][:80] == totals
        assert max(totals) > 10
    assert not any(seen["cycles_high"])


def test_registers_that_never_change() -> None:
    seen = run([{}])
    assert set(seen["id"]) == {regions.MAGIC}
    assert set(seen["digest"]) == {int(SMALL.digest[:8], 16)}
    assert set(seen["control"]) == {0}
    assert set(seen["layer"]) == {LAYER}


def test_with_a_tape_ticks_and_waits_are_counted_three_cycles_later_and_passes_are_told() -> None:
    registers = TapeRegisters(SMALL.with_external())
    bench = Bench(registers)
    source = random.Random(2)
    begin, start, end, clear = 3, 8, 60, 70
    width = len(COUNTERS)
    script = [
        {"waits": source.getrandbits(1), "ticks": source.getrandbits(width)} for _ in range(80)
    ]
    script[begin]["begin"] = script[end]["finished"] = script[clear]["clear"] = 1
    script[start]["aligned"] = 1
    names = ("begin", "clear", "finished", "aligned", "waits")
    bench.hold((registers.calibrated, 1), (registers.passes, 65535))
    signals = {name: getattr(registers, name) for name in names}
    bench.script(signals | {"ticks": registers.ticks.as_value()}, script)
    seen = bench.probe(
        start=registers.start,
        **{name: registers.values[name] for name in ("passes", "wait_cycles", *COUNTERS)},
    )
    bench.run()
    assert ones(seen["start"]) == [start]
    ticking = {name: [step["ticks"] >> i & 1 for step in script] for i, name in enumerate(COUNTERS)}
    for name, ticks in (ticking | {"wait_cycles": [step["waits"] for step in script]}).items():
        assert seen[name] == [
            sum(ticks[start + 1 : min(max(cycle, 2) - 2, end + 1)]) if cycle <= clear + 1 else 0
            for cycle in range(80)
        ]
    assert max(seen["wait_cycles"]) > 10
    assert set(seen["passes"]) == {65535}


def test_a_core_with_external_memory_has_registers_of_its_own() -> None:
    assert [registers(c) for c in (SMALL, SMALL.with_external())] == [Registers, TapeRegisters]
