"""What the regression reports: JUnit's XML, JSON, waves of what failed, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from lbq_hw.sim import regression, reports
from lbq_hw.sim.reports import Result
from lbq_hw.sim.runner import Run
from lbq_hw.sim.verilog import SimulatorError


def result(**changes: Any) -> Result:
    run = Run(tests=("a", "b"), failures={"b": "o: differs\nhere"}, seconds={"a": 0.5, "b": 1.25})
    facts = {"bench": "lanes", "shape": 1, "simulator": "icarus", "run": run, "seconds": 3.0}
    return Result(**facts | changes)


def broken() -> Result:
    return result(run=Run(tests=(), failures={}, seconds={}), error="icarus dies:\nlog")


def test_junit_has_a_suite_per_run_and_a_case_per_test() -> None:
    root = ElementTree.fromstring(reports.junit([result(), broken()]))
    first, second = root.iter("testsuite")
    assert first.attrib == {
        "name": "lanes-1-icarus", "tests": "2", "failures": "1", "errors": "0", "time": "3.000"
    }  # fmt: skip
    good, bad = first.iter("testcase")
    assert good.attrib == {"classname": "lanes-1-icarus", "name": "a", "time": "0.500"}
    assert list(good) == []
    (failure,) = bad
    assert (failure.tag, failure.get("message")) == ("failure", "o: differs")
    assert failure.text == "o: differs\nhere"
    (error,) = second.iter("error")
    assert (second.get("errors"), error.get("message"), error.text) == (
        "1", "icarus dies:", "icarus dies:\nlog"
    )  # fmt: skip


def test_json_has_every_test_with_its_failure() -> None:
    facts = reports.facts([result(waves=Path("w.fst")), broken()])
    assert facts["passed"] is False
    first, second = facts["benches"]
    assert first["tests"][1] == {"name": "b", "seconds": 1.25, "failure": "o: differs\nhere"}
    assert (first["waves"], first["error"]) == ("w.fst", None)
    assert second["error"] == "icarus dies:\nlog"


# In one process, which has the replaced functions.
ALONE = ("--simulator", "icarus", "--workers", "1")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """Runs of testbenches that do nothing: `lanes` fails, `writer` dies; the waves of each."""
    asked: list[Any] = []

    def run_bench(bench: str, *, waves: Path | None = None, **options: Any) -> Result:
        asked.append((bench, options["simulator"], waves))
        if bench == "writer":
            raise SimulatorError("icarus dies")
        if bench == "lanes":
            return result(bench=bench, shape=options["shape"], waves=waves)
        run = Run(tests=("a",), failures={}, seconds={"a": 0.0})
        return result(bench=bench, shape=options["shape"], run=run, waves=waves)

    monkeypatch.setattr(regression, "run_bench", run_bench)
    monkeypatch.setattr(regression, "missing", lambda _: None)
    monkeypatch.chdir(tmp_path)
    return asked


def test_what_fails_is_run_again_with_waves(
    told: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert regression.main(["planes", "lanes", *ALONE, "--json"]) == 1
    waves = Path("build/waves/lanes-0-icarus.fst")
    assert told == [
        ("lanes", "icarus", None), ("lanes", "icarus", waves), ("planes", "icarus", None)
    ]  # fmt: skip
    facts = json.loads(capsys.readouterr().out)
    assert [bench["waves"] for bench in facts["benches"]] == [None, str(waves)]


def test_a_simulator_that_dies_is_an_error_of_its_bench_alone(
    told: list[Any], tmp_path: Path
) -> None:
    file = tmp_path / "out" / "junit.xml"
    arguments = ["writer", "planes", *ALONE, "--junit", str(file)]
    assert regression.main(arguments) == 2
    assert [bench for bench, *_ in told] == ["planes", "writer"]
    names = [suite.get("name") for suite in ElementTree.parse(file).getroot()]
    assert names == ["writer-0-icarus", "planes-0-icarus"]


def test_waves_that_are_asked_for_are_written_at_once(told: list[Any], tmp_path: Path) -> None:
    assert regression.main(["planes", "--simulator", "icarus", "--waves", str(tmp_path)]) == 0
    assert told == [("planes", "icarus", tmp_path / "planes-0-icarus.fst")]


def test_a_simulator_that_was_chosen_and_cannot_run_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(regression, "missing", lambda name: f"{name} is too old")
    assert regression.main(["planes", "--simulator", "verilator"]) == 2
    assert capsys.readouterr().err == "error: verilator is too old\n"


def test_a_bench_that_a_simulator_cannot_run_is_told(
    told: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert regression.main(["memory", "--simulator", "verilator"]) == 2
    assert capsys.readouterr().err == "error: memory does not run on verilator\n"
    assert told == []
