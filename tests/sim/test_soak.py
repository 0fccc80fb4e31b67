"""Many inferences in one run: results are golden's, and no process grows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from simulators import CACHE, needs_verilator

from lbq_hw.sim import small_boards, soak
from lbq_hw.sim.drawn.networks import random_network
from lbq_hw.sim.soak import ALLOWED, Memory

MB = 1 << 20


@pytest.mark.parametrize(
    ("samples", "flat"),
    [
        ([90 * MB] * 40, True),
        ([*([70 * MB] * 4), *([90 * MB] * 36)], True),  # it grew while all began
        ([*([70 * MB] * 8), *([90 * MB] * 32)], False),
        ([*range(70 * MB, 90 * MB, MB // 2)], False),
        ([90 * MB - k % 3 * MB for k in range(40)], True),
        ([90 * MB + k * ALLOWED // 40 for k in range(40)], True),
    ],
)
def test_growth_is_counted_from_a_fifth_of_the_run_on(samples: list[int], flat: bool) -> None:
    assert Memory(samples=tuple(samples)).flat == flat


def test_the_memory_of_a_process_is_seen() -> None:
    before = soak.resident(os.getpid())
    block = np.ones(64 * MB, np.uint8)
    assert soak.resident(os.getpid()) - before > 48 * MB
    assert block.all()


def test_inputs_are_drawn_from_the_seed_and_differ() -> None:
    network = random_network(33, static=True)
    batches = [*soak.inputs_of(network, 120, 3)]
    assert [len(batch) for batch in batches] == [50, 50, 20]
    again = np.concatenate([*soak.inputs_of(network, 120, 3)])
    assert np.array_equal(again, np.concatenate(batches))
    assert not np.array_equal(batches[0], batches[1])


@needs_verilator
def test_results_on_the_chip_are_golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation of test_noise.py, which is built already."""
    packed = small_boards.on_chip(random_network(33, static=True), tmp_path, queue=True)
    found = soak.run(packed, inferences=60, seed=1, cache=CACHE)
    assert (found.kind, found.inferences, found.wrong) == ("on-chip", 60, 0)
    assert found.cycles > 60
    assert found.good
    wrong = soak.golden.run(packed.network, next(soak.inputs_of(packed.network, 50, 2)))
    monkeypatch.setattr(soak.golden, "run", lambda *_: wrong)
    found = soak.run(packed, inferences=50, seed=1, cache=CACHE)
    assert found.wrong > 0
    assert not found.good


@needs_verilator
@pytest.mark.slow
def test_the_command_runs_both_memories(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--inferences", "200", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [run["kind"] for run in runs] == ["on-chip", "external"]
    assert all(run["inferences"] == 200 and run["good"] for run in runs)
    assert all(run["cycles_per_inference"] <= 20_000 for run in runs)
