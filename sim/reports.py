"""Reports of testbenches: a table, a JSON object, and JUnit's XML for CI systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from lbq_hw.sim.runner import Run


@dataclass(frozen=True, kw_only=True)
class Result:
    """One testbench of one shape on one simulator; `error` says why it could not be run."""

    bench: str
    shape: int
    simulator: str
    run: Run
    seconds: float
    waves: Path | None = None
    error: str = ""

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.bench}-{self.shape}-{self.simulator}"


def show(results: Sequence[Result], console: Console) -> None:
    """Print a table, and below it the failures."""
    table = Table(title="regression")
    for heading in ("bench", "shape", "simulator", "tests", "failed", "seconds"):
        table.add_column(heading, justify="left" if heading in ("bench", "simulator") else "right")
    for result in results:
        counts = (len(result.run.tests), len(result.run.failures))
        numbers = (*(str(count) for count in counts), f"{result.seconds:.1f}")
        table.add_row(result.bench, str(result.shape), result.simulator, *numbers)
    console.print(table)
    for result in results:
        for name, text in result.run.failures.items():
            console.print(f"{result.bench}, {name}: {text}", markup=False)
        if result.run.failures and result.waves is not None:
            console.print(f"{result.bench}, waves: {result.waves}", markup=False)
        if result.error:
            console.print(f"{result.bench}, not run: {result.error}", markup=False)


def facts(results: Sequence[Result]) -> dict[str, Any]:
    """One JSON-able object."""
    return {
        "passed": not any(result.run.failures or result.error for result in results),
        "benches": [
            {
                "bench": result.bench,
                "shape": result.shape,
                "simulator": result.simulator,
                "seconds": result.seconds,
                "error": result.error or None,
                "waves": None if result.waves is None else str(result.waves),
                "tests": [
                    {
                        "name": test,
                        "seconds": result.run.seconds[test],
                        "failure": result.run.failures.get(test),
                    }
                    for test in result.run.tests
                ],
            }
            for result in results
        ],
    }


def junit(results: Sequence[Result]) -> str:
    """JUnit's XML: a suite per testbench, shape and simulator, a case per test."""
    root = ElementTree.Element("testsuites", name="sim.regression")
    for result in results:
        run = result.run
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=result.name,
            tests=str(len(run.tests) or 1),
            failures=str(len(run.failures)),
            errors=str(int(bool(result.error))),
            time=f"{result.seconds:.3f}",
        )
        for test in run.tests:
            seconds = f"{run.seconds[test]:.3f}"
            place = {"classname": result.name, "name": test, "time": seconds}
            case = ElementTree.SubElement(suite, "testcase", place)
            if test in run.failures:
                text = run.failures[test]
                ElementTree.SubElement(case, "failure", message=text.splitlines()[0]).text = text
        if result.error:
            place = {"classname": result.name, "name": "run", "time": "0.000"}
            case = ElementTree.SubElement(suite, "testcase", place)
            text = result.error
            ElementTree.SubElement(case, "error", message=text.splitlines()[0]).text = text
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
