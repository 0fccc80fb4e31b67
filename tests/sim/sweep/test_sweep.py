"""The sweep: its jobs, where they run, the file of its results, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulators import needs_verilator

from lbq_hw.sim.sweep import __main__ as command
from lbq_hw.sim.sweep import engine
from lbq_hw.sim.sweep.shapes import KINDS, Result, Shape
from lbq_hw.sim.sweep.stands import stand_of
from lbq_hw.sim.sweep.store import Store, Sweep

SWEEP = Sweep(seed=3, shapes=4, networks=10, sources="0")


def result(number: int, difference: str | None = None) -> Result:
    return Result(
        number=number,
        kind=KINDS[number % len(KINDS)],
        core={"lanes": 4},
        build=f"{number}",
        networks=5,
        inputs=7,
        cycles=100,
        seconds=1.5,
        difference=difference,
    )


def test_networks_are_shared_out_evenly() -> None:
    assert [shape.networks for shape in command.shapes_of(SWEEP)] == [3, 3, 2, 2]


@pytest.mark.parametrize("number", range(4))
def test_a_shape_is_drawn_again_as_it_was(number: int) -> None:
    shape = Shape(seed=1, number=number, networks=2)
    (stand, trials), (again, others) = shape.draw(), shape.draw()
    assert stand == again
    assert stand.kind == shape.kind
    for trial, other in zip(trials, others, strict=True):
        assert np.array_equal(trial.inputs, other.inputs)
    assert stand_of(json.loads(json.dumps(stand.facts()))) == stand
    another, _ = replace(shape, number=number + len(KINDS)).draw()
    assert another.facts() != stand.facts()


def test_a_sweep_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "out" / "results.jsonl"
    store = Store(path, SWEEP)
    for added in (result(2), result(0), result(1, "network 0: layer 'a'")):
        store.add(added)
    with path.open("a") as stream:
        stream.write('{"number": 3, "kin')  # it was killed here
    again = Store(path, SWEEP)
    assert again.results == {2: result(2), 0: result(0)}
    again.add(result(3))
    assert sorted(Store(path, SWEEP).results) == [0, 2, 3]


@pytest.mark.parametrize("other", [{"seed": 4}, {"networks": 11}, {"sources": "1"}])
def test_results_of_another_sweep_are_refused(tmp_path: Path, other: dict) -> None:
    Store(tmp_path / "a", replace(SWEEP, **other))
    with pytest.raises(ValueError, match="has the results of another sweep"):
        Store(tmp_path / "a", SWEEP)


def test_a_file_that_has_no_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello\n")
    with pytest.raises(ValueError, match="is not a file of results: 'hello'"):
        Store(tmp_path / "a", SWEEP)


def test_facts_sum_what_was_found(tmp_path: Path) -> None:
    store = Store(tmp_path / "a", SWEEP)
    for number in range(3):
        store.add(result(number))
    found = command.facts(SWEEP, store, seconds=9.0)
    assert found["by_kind"] == {"on-chip": 10, "external": 5, "streaming": 0}
    assert (found["networks"], found["inputs"], found["cycles"]) == (15, 21, 300)
    assert (found["differences"], found["core_seconds"]) == (0, 4.5)
    assert command.spoken(found) == (
        "15 networks (10 on-chip, 5 external, 0 streaming) on 3 cores, 300 cycles: 0 differences"
    )
    store.add(result(3, "network 0: layer 'a'"))
    found = command.facts(SWEEP, store, seconds=9.0) | {"case": "here", "case_layers": 1}
    assert command.spoken(found).splitlines()[1:] == [
        "network 0: layer 'a'",
        "a test with a network of 1 layer: here",
    ]


def test_more_shapes_than_networks_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--networks", "3"])
    assert ended.value.code == 2
    assert "--shapes must be at most --networks (3), not 4" in capsys.readouterr().err


def test_a_scheduler_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--networks", "4", "--out", str(tmp_path / "a"), "--scheduler", "tcp://127.0.0.1:9"]
    assert command.main(options) == 2
    assert "127.0.0.1:9" in capsys.readouterr().err


@needs_verilator
@pytest.mark.slow
def test_two_workers_give_the_results_of_one_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for workers in ("2", "1"):
        out = tmp_path / f"{workers}.jsonl"
        options = ["--networks", "20", "--seed", "5", "--workers", workers, "--json"]
        assert command.main([*options, "--out", str(out)]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["networks"], facts["differences"]) == (20, 0)
        sweep = Sweep(seed=5, shapes=4, networks=20, sources=engine.sources())
        found.append(Store(out, sweep).results)
    assert found[0] == found[1]
    assert sorted(found[0]) == [0, 1, 2, 3]
