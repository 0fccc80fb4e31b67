"""Builds a point until it is placed and routed, with the steps of ``lbq build``.

A point is synthesised once, in a folder of its own. Each seed gets a copy of that folder, so that
seeds can be placed side by side. A missed clock is a result here, not an error.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lbq_hw import boards, families, flow
from lbq_hw.explore.points import Placed, Point
from lbq_hw.flow import steps
from lbq_hw.flow.job import FlowError, Job, Options
from lbq_hw.flow.runner import RECORD, Step
from lbq_hw.resources.door import cells_of_door
from lbq_hw.resources.measured import point as measured_row
from lbq_hw.resources.model import small_of
from lbq_hw.tools import logs
from lbq_hw.tools.process import ToolError


@dataclass(frozen=True, kw_only=True)
class Build:
    """A point to synthesise in a folder of `root`, or, with a `seed`, to place from there."""

    point: Point
    options: Options
    root: Path
    seed: int | None = None

    @property
    def folder(self) -> Path:
        """Where its products are."""
        name = self.point.id if self.seed is None else f"{self.point.id}-seed{self.seed}"
        return self.root / name


def synthesise(build: Build) -> Placed | None:
    """Run the steps until there is a netlist; returns the error, if there is one."""
    return _run(build, "synth")


def place(build: Build) -> Placed:
    """Place and route with one seed, after `synthesise`."""
    source = replace(build, seed=None).folder
    if _netlist(build.folder) != _netlist(source):
        shutil.rmtree(build.folder, ignore_errors=True)
        shutil.copytree(source, build.folder)
    return _run(build, "place") or _placed(build)


def _netlist(folder: Path) -> str | None:
    """The inputs of the netlist in a folder, if there is one."""
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))["synth"]["key"]
    except (OSError, ValueError, LookupError):
        return None


def _run(build: Build, last: str) -> Placed | None:
    options = replace(build.options, seed=build.seed, tries=1)
    board = boards.find(build.point.board)
    job = Job(options, board, build.folder.resolve())
    try:
        flow.run(job, _steps(build.point), last=last)
    except (FlowError, ToolError) as error:
        text = str(error).splitlines()[0]
        return Placed(id=build.point.id, seed=build.seed or 0, error=text)
    return None


def _steps(point: Point) -> list[Step]:
    """The steps of a build up to `place`, without simulation, for the core of a point."""
    own = {"fit": _given(point), "place": _measured}
    found = [step for step in flow.STEPS if step.name != "simulate"]
    names = [step.name for step in found]
    return [
        replace(step, run=own.get(step.name, step.run))
        for step in found[: names.index("place") + 1]
    ]


def _given(point: Point) -> Callable[[Job, Path], str]:
    """The step `fit` for a core that is already chosen."""

    def fit(job: Job, work: Path) -> str:
        """Take the core of the exploration."""
        core = point.core
        clock = {"clock_hz": point.clock_hz}
        for name, value in (("core", core), ("config", core["config"]), ("clock", clock)):
            text = json.dumps(value, indent=1, sort_keys=True) + "\n"
            (work / f"{name}.json").write_text(text, encoding="utf-8")
        np.save(work / "images.npy", job.images.raw)
        return point.id

    return fit


def _measured(job: Job, work: Path) -> str:
    """Place and route; a missed clock is kept as it is."""
    try:
        return steps.place(job, work)
    except FlowError as error:
        report = work / "place.json"
        if not report.is_file():
            raise
        found = logs.timing(logs.parse(report.read_text(encoding="utf-8"), name="place.json"))
        fmax_hz = min(clock.fmax_hz for clock in found.clocks)
        seeds = {"seed": job.options.seed, "seeds": {str(job.options.seed): fmax_hz}}
        (work / "seeds.json").write_text(json.dumps(seeds) + "\n", encoding="utf-8")
        return str(error).splitlines()[0]


def _placed(build: Build) -> Placed:
    """The results in the products of a build."""
    assert build.seed is not None

    def read(name: str) -> dict:
        return json.loads((build.folder / name).read_text(encoding="utf-8"))

    report, family = read("place.json"), families.of(boards.find(build.point.board))
    used = {found.kind: found.used for found in logs.resources(report, family.cells)}
    checked = read("check.json")
    return Placed(
        id=build.point.id,
        seed=build.seed,
        luts=used.get("LC") or used["LUT"],
        block_rams=used.get("EBR", 0),
        fmax_hz=min(clock.fmax_hz for clock in logs.timing(report).clocks),
        cycles=None if checked["source"] == "noise" else checked["cycles"],
        row=measured_row(build.folder, small=small_of, door=cells_of_door),
    )
