# amaranth: UnusedElaboratable=no
"""Commands of the sequencer, cycle by cycle."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest
from amaranth.back import verilog
from core.external.simulated import SMALL_16
from core.harness import Bench

from lbq_hw.external.chips import ULX3S
from lbq_hw.core.external.sequencer import Command, Sequencer
from sim.verilog import ports

CLOCK = 80_000_000
QUICK = dataclasses.replace(SMALL_16, power_up=3_000_000, refresh=3_000_000)


def watch(sequencer: Sequencer, steps: list[dict[str, int]]) -> dict[str, list[int]]:
    bench = Bench(sequencer)
    inputs = ("reading", "writing", "address", "data", "free", "quiet")
    bench.script({name: getattr(sequencer, name) for name in inputs}, steps)
    outputs = ("clk_en", "command", "ba", "a", "dqm", "dq_o", "dq_oe", "read", "written")
    history = bench.probe(**{name: getattr(sequencer, name) for name in outputs})
    bench.run(limit=len(steps) + 1)
    return history


def commands(history: dict[str, list[int]]) -> list[tuple[int, Command]]:
    found = enumerate(history["command"])
    return [(cycle, Command(value)) for cycle, value in found if value]


def after_power_up(steps: list[dict[str, int]], idle: int = 560) -> dict[str, list[int]]:
    """What happens from the mode register on, where `steps` begin after `idle` cycles."""
    return watch(Sequencer(chip=QUICK, clock_hz=CLOCK), [{}] * idle + steps)


def test_the_chip_is_brought_up_in_the_order_of_its_data_sheet() -> None:
    sequencer = Sequencer(chip=QUICK, clock_hz=CLOCK)
    cycles = sequencer.cycles
    history = watch(sequencer, [{}] * 600)
    done = commands(history)
    assert [command for _, command in done[:10]] == [
        Command.PRECHARGE,
        *[Command.REFRESH] * 8,
        Command.MODE,
    ]
    times = [cycle for cycle, _ in done[:10]]
    assert times[0] >= cycles.power_up
    assert times[1] - times[0] == cycles.rp
    assert {after - before for before, after in itertools.pairwise(times[1:])} == {cycles.rfc}
    assert history["a"][times[0]] == 1 << 10
    assert history["a"][times[9]] == 1 << 9 | cycles.cas << 4 | 7
    assert history["ba"][times[9]] == 0
    enabled = history["clk_en"].index(1)
    assert 0.4 * times[0] < enabled < 0.6 * times[0]
    assert set(history["clk_en"][enabled:]) == {1}
    assert set(history["dqm"][: times[9]]) == {3}
    assert set(history["dqm"][times[9] + 1 :]) == {0}


def test_refreshes_come_at_their_intervals_while_nothing_else_happens() -> None:
    sequencer = Sequencer(chip=QUICK, clock_hz=CLOCK)
    history = watch(sequencer, [{}] * 4000)
    times = [cycle for cycle, command in commands(history) if command is Command.REFRESH][8:]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert gaps == [sequencer.cycles.refresh] * len(gaps)
    assert len(gaps) > 12


@pytest.mark.parametrize("seed", range(3))
def test_refreshes_are_never_further_apart_than_the_chip_allows(seed: int) -> None:
    source = random.Random(seed)
    sequencer = Sequencer(chip=QUICK, clock_hz=CLOCK)
    steps: list[dict[str, int]] = [{}] * 560
    for _ in range(300):
        kind = source.choice(("reading", "writing", "idle"))
        step = {kind: 1} if kind != "idle" else {}
        step |= {"address": source.randrange(QUICK.words), "quiet": source.random() < 0.9}
        steps += [step | {"free": 1}] * source.choice((1, 3, 10, 40))
    history = watch(sequencer, steps)
    times = [cycle for cycle, command in commands(history) if command is Command.REFRESH][8:]
    most = QUICK.refresh * CLOCK // 10**12
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps) <= most
    # As many as in so many cycles without traffic, but for one on its way.
    assert abs(len(gaps) - (times[-1] - times[0]) // sequencer.cycles.refresh) <= 1
    assert len(gaps) > 10


def test_a_change_of_row_and_a_refresh_cost_the_stated_cycles() -> None:
    chip = dataclasses.replace(QUICK, refresh=7_812_500)
    sequencer = Sequencer(chip=chip, clock_hz=CLOCK)
    cycles = sequencer.cycles
    bench = Bench(sequencer)
    address = {"value": 0}

    class Count:
        """Reads on and on: the address follows `read`."""

        samples = (sequencer.read,)
        done = True

        def set(self, ctx):
            ctx.set(sequencer.reading, 1)
            ctx.set(sequencer.free, 1)
            ctx.set(sequencer.address, address["value"])

        def see(self, cycle, read):
            del cycle
            address["value"] += read

    bench.add(Count())
    history = bench.probe(read=sequencer.read, command=sequencer.command)
    bench.script({}, [{}] * 5000)
    bench.run(limit=5001)
    reads = [cycle for cycle, read in enumerate(history["read"]) if read]
    refreshed = {cycle for cycle, command in commands(history) if command is Command.REFRESH}
    gaps = {False: set(), True: set()}
    for before, after in itertools.pairwise(reads):
        if after - before > 1:
            gaps[any(before < cycle <= after for cycle in refreshed)].add(after - before - 1)
    assert gaps[False] == {cycles.rp + cycles.rcd}
    assert gaps[True] == {cycles.rp + cycles.rfc + cycles.rcd}


def test_data_are_on_the_bus_around_the_command_of_a_write() -> None:
    write = {"writing": 1, "address": 0x305, "data": 0xBEEF, "quiet": 1}
    history = after_power_up([write] * 5 + [{}] * 8)
    ((written, _),) = [(c, k) for c, k in commands(history) if k is Command.WRITE]
    driven = [cycle for cycle, value in enumerate(history["dq_oe"]) if value]
    assert driven == [written - 1, written, written + 1]
    assert {history["dq_o"][cycle] for cycle in driven} == {0xBEEF}
    assert history["a"][written] == 0x105
    assert history["written"][written - 2] == 1


def test_a_write_waits_until_no_word_is_on_its_way() -> None:
    write = {"writing": 1, "address": 5, "data": 1}
    history = after_power_up([write] * 40)
    assert Command.WRITE not in [command for _, command in commands(history)]


def test_a_burst_without_room_is_terminated_and_taken_up_again() -> None:
    read = {"reading": 1, "address": 7}
    steps = [read | {"free": 1}] * 12 + [read] * 6 + [read | {"free": 1}] * 6
    history = after_power_up(steps)
    kinds = [command for _, command in commands(history)][10:]
    kinds = [kind for kind in kinds if kind not in (Command.REFRESH, Command.PRECHARGE)]
    assert kinds[:4] == [Command.ACTIVATE, Command.READ, Command.TERMINATE, Command.READ]
    ends = [cycle for cycle, command in commands(history) if command is Command.TERMINATE]
    assert sum(history["read"][: ends[0]]) == ends[0] - history["read"].index(1) - 1


def test_the_sequencer_converts_to_verilog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    sequencer = Sequencer(chip=ULX3S, clock_hz=CLOCK)
    assert "output [12:0] a;" in verilog.convert(sequencer, ports=ports(sequencer))
