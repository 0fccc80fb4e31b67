# amaranth: UnusedElaboratable=no
"""Commands of the sequencer, cycle by cycle."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest
from amaranth.back import verilog
from core.external.simulated import SMALL_16
from core.harness import Bench, ones

from lbq_hw.chips import ULX3S
from lbq_hw.core.external.sequencer import Command, Sequencer
from lbq_hw.sim.verilog import ports

CLOCK = 80_000_000
QUICK = dataclasses.replace(SMALL_16, power_up=3_000_000, refresh=3_000_000, column_bits=5)
UP = 560  # cycles after which the chip is up


def watch(accesses: list[dict[str, int]], cycles: int) -> dict[str, list[int]]:
    """What happens where accesses are offered one after the other, from cycle `UP` on."""
    sequencer = Sequencer(chip=QUICK, clock_hz=CLOCK)
    bench = Bench(sequencer)
    bench.script({"allowed": sequencer.allowed}, [{"allowed": 1}] * cycles)
    waits = iter([True] * UP)
    driver = bench.drive(sequencer.access, accesses, stall=lambda: next(waits, False))
    outputs = ("clk_en", "command", "ba", "a", "dqm", "dq_o", "dq_oe", "read", "idle", "phase")
    history = bench.probe(**{name: getattr(sequencer, name) for name in outputs})
    bench.run(limit=cycles + 1)
    return history | {"taken": driver.cycles}


def commands(history: dict[str, list[int]]) -> list[tuple[int, Command]]:
    found = enumerate(history["command"])
    return [(cycle, Command(value)) for cycle, value in found if value]


def access(address: int, more: int = 0, *, data: int | None = None) -> dict[str, int]:
    write = data is not None
    return {"write": int(write), "address": address, "more": more, "data": data or 0}


def test_the_chip_is_brought_up_in_the_order_of_its_data_sheet() -> None:
    cycles = QUICK.cycles(CLOCK)
    history = watch([], UP + 100)
    done = commands(history)
    assert [command for _, command in done[:10]] == [
        Command.PRECHARGE,
        *[Command.REFRESH] * 8,
        Command.MODE,
    ]
    times = [cycle for cycle, _ in done[:10]]
    assert times[0] >= cycles.power_up
    assert times[-1] < UP
    assert times[1] - times[0] == cycles.rp
    assert {after - before for before, after in itertools.pairwise(times[1:])} == {cycles.rfc}
    assert history["a"][times[0]] == 1 << 10
    assert history["a"][times[9]] == 1 << 9 | 3 << 4 | 7
    assert history["ba"][times[9]] == 0
    enabled = history["clk_en"].index(1)
    assert 0.3 * times[0] < enabled < 0.7 * times[0]
    assert set(history["clk_en"][enabled:]) == {1}
    assert set(history["dqm"][: times[9]]) == {3}
    assert set(history["dqm"][times[9] + 1 :]) == {0}


def test_refreshes_come_at_their_intervals_while_nothing_else_happens() -> None:
    history = watch([], 4000)
    times = [cycle for cycle, command in commands(history) if command is Command.REFRESH][8:]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert gaps == [QUICK.cycles(CLOCK).refresh] * len(gaps)
    assert len(gaps) > 12
    # The decision was a cycle before the command; all banks are closed when the phase comes.
    phases = [cycle for cycle in ones(history["phase"]) if cycle > times[0]]
    assert phases[0] == times[0] - 1 + QUICK.cycles(CLOCK).rfc
    assert all(history["idle"][cycle] for cycle in phases)


def draw(source: random.Random, count: int) -> list[dict[str, int]]:
    """Random accesses."""
    found = []
    for _ in range(count):
        address = source.randrange(QUICK.words)
        if source.random() < 0.4:
            found.append(access(address, data=source.getrandbits(16)))
        else:
            left = QUICK.page_words - address % QUICK.page_words
            found.append(access(address, source.randrange(left)))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_every_decision_comes_in_the_stated_cycle(seed: int) -> None:
    cycles, accesses = QUICK.cycles(CLOCK), draw(random.Random(seed), 120)
    history = watch(accesses, 4000)
    kinds = (Command.ACTIVATE, Command.REFRESH)
    decided = [(cycle - 1, kind) for cycle, kind in commands(history) if kind in kinds]
    decided = [(cycle, kind) for cycle, kind in decided if cycle >= history["taken"][0]]
    left, reads, refreshes = iter(zip(history["taken"], accesses, strict=True)), [], 0
    for (at, kind), (after, _) in itertools.pairwise(decided):
        busy = cycles.rfc
        if kind is Command.ACTIVATE:
            cycle, one = next(left)
            assert cycle == at
            words = one["more"] + 1
            busy = (cycles.rcd + cycles.wr) if one["write"] else cycles.rcd + words
            busy = max(busy, cycles.ras) + cycles.rp
            if not one["write"]:
                reads += range(at + cycles.rcd, at + cycles.rcd + words)
        refreshes += kind is Command.REFRESH
        if after > history["taken"][-1]:
            break
        assert after == at + busy
    assert refreshes > 3
    assert ones(history["read"])[: len(reads)] == reads


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_no_row_waits_longer_for_its_refresh_than_the_chip_allows(seed: int) -> None:
    history = watch(draw(random.Random(seed), 900), 20_000)
    times = [cycle for cycle, command in commands(history) if command is Command.REFRESH][8:]
    rows = 1 << QUICK.row_bits
    most = rows * QUICK.refresh * CLOCK // 10**12
    assert len(times) > 2 * rows
    assert all(after - before <= most for before, after in zip(times, times[rows:], strict=False))


def test_data_are_on_the_bus_from_the_row_on_to_after_the_command_of_a_write() -> None:
    history = watch([access(0x105, data=0xBEEF)], UP + 40)
    ((written, _),) = [(c, k) for c, k in commands(history) if k is Command.WRITE]
    (taken,) = history["taken"]
    assert written == taken + QUICK.cycles(CLOCK).rcd + 1
    driven = ones(history["dq_oe"])
    assert driven == list(range(taken + 1, driven[-1] + 1))
    assert driven[-1] > written
    assert {history["dq_o"][cycle] for cycle in driven} == {0xBEEF}
    assert history["a"][written] == 0x105 % QUICK.page_words
    assert history["ba"][written] == 0x105 // QUICK.page_words % 4


def test_an_access_that_is_not_allowed_waits() -> None:
    sequencer = Sequencer(chip=QUICK, clock_hz=CLOCK)
    bench = Bench(sequencer)
    bench.script({"valid": sequencer.access.valid}, [{"valid": 1}] * (UP + 100))
    history = bench.probe(command=sequencer.command, ready=sequencer.access.ready)
    bench.run(limit=UP + 101)
    assert ones(history["ready"]) == []
    kinds = {command for _, command in commands(history)}
    assert kinds == {Command.PRECHARGE, Command.REFRESH, Command.MODE}


def test_the_sequencer_converts_to_verilog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    sequencer = Sequencer(chip=ULX3S, clock_hz=CLOCK)
    assert "output [12:0] a;" in verilog.convert(sequencer, ports=ports(sequencer))
