"""The last step: writes all results of the build as the report's facts."""

from __future__ import annotations

import importlib.metadata
import shlex
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbq_hw import families, golden, package, report
from lbq_hw.flow.job import Job
from lbq_hw.golden import Trace, early
from lbq_hw.golden.counts import Counter
from lbq_hw.host import estimate
from lbq_hw.host.ports import AUTO
from lbq_hw.report import collect, facts
from lbq_hw.sizing.activity import Activity
from lbq_hw.sizing.door import line_of
from lbq_hw.tools import locate, logs
from lbq_hw.tools.placed import KINDS

_LIBRARIES = ("amaranth", "amaranth-boards")
TESTED, WORK = 500, 4 * 10**9
"""Limits for the answers in the report: images, and multiplications of an equivalent ANN."""
FMAX = "Fmax (MHz)"
SEEN, ALONE = "images/s over the link", "images/s of the core"


def write_report(job: Job, work: Path) -> str:
    """Write report.html and its JSON files."""
    simulated = job.json("simulate.json")
    ran = "skipped" not in simulated
    predicted = collect.predicted(job.json("check.json"))
    placed = _placed(job) if job.board.family is not None else {}
    counter, levels = Counter(job.network), collect.Levels(job.network)

    def observe(trace: Trace) -> None:
        counter(trace)
        levels(trace)

    golden.run(job.network, job.images.raw, observe=observe)
    page = report.write(
        work / "report",
        facts.Facts(
            model=collect.model(job.network, evaluation=job.evaluation),
            answers=_answers(job, counter.counts().macs),
            board=_board(job),
            core=collect.core(job.config),
            fit=_fit(job),
            cycles=collect.cycles(simulated, model=predicted) if ran else predicted,
            link=_link(job),
            operations=collect.operations(counter.counts()),
            neurons=levels.neurons(),
            memory=collect.memory(job.program),
            proofs=collect.proofs(job.program),
            simulation=collect.simulation(simulated, simulator="Verilator") if ran else None,
            build=_build(job),
            **placed,
        ),
    )
    return str(job.folder / "report" / page.name)


def next_commands(job: Job) -> list[str]:
    """Lines for a shell: load the package's bitstream, then test the board with its self-test."""
    made = package.read(job.folder / "package")
    folder = shlex.quote(str(made.folder))
    if made.bitstream is None:
        return [f"lbq sim-board --package {folder} --host --selftest"]
    return [
        job.board.command(str(made.bitstream)),
        f"lbq host --port {AUTO} --package {folder} --selftest",
    ]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure: the estimate of sizing, the result, and the number available on the board."""

    name: str
    estimate: float | None
    result: float | None
    available: float | None


def results(job: Job) -> list[Row]:
    """Estimates beside results, for the steps that this run has reached."""
    reached = {outcome.step for outcome in job.outcomes}
    if "fit" not in reached:
        return []
    sized = job.json("core.json")
    ran = job.json("simulate.json") if "simulate" in reached else {}
    cycles = Row(
        name="cycles per image",
        estimate=job.json("check.json")["cycles"] if "check" in reached else sized["cycles"],
        result=ran.get("cycles"),
        available=None,
    )
    rates = _rates(job, cycles, reached)
    if job.board.family is None:
        return [cycles, *rates]
    guess, used, fmax = sized["estimate"], {}, None
    if "place" in reached:
        placed = _placed(job)
        used = {resource.kind: resource.used for resource in placed["resources"]}
        fmax = min(clock.fmax_hz for clock in placed["timing"].clocks) / 1e6
    rows = [
        Row(
            name=KINDS[kind],
            estimate=guess[name],
            result=used.get(kind),
            available=getattr(job.board, name),
        )
        for kind, name in _estimated(job).items()
    ]
    clock = Row(
        name=FMAX,
        estimate=guess["fmax_hz"] / 1e6 or None,
        result=fmax,
        available=job.clock_hz / 1e6,
    )
    return [*rows, clock, cycles, *rates]


def _rates(job: Job, cycles: Row, reached: Collection[str]) -> list[Row]:
    """Images per second: over the link at the board's highest rate, and of the core alone. The
    image on the link is black until the build has read its images.
    """
    line = line_of(job.board, job.clock_hz)
    seen: list[float | None] = [None, None]
    core: list[float | None] = [None, None]
    for column, count in enumerate((cycles.estimate, cycles.result)):
        if count is not None:
            pace = line.pace(job.opening, clock_hz=job.clock_hz, cycles=count)
            seconds = count / job.clock_hz
            if "compile" in reached:
                raw = job.images.raw[0] if "check" in reached else None
                made = estimate.traffic(job.program, raw, pace=pace)
            else:
                made = estimate.expected_traffic(job.network, job.config, pace=pace)
            seen[column], core[column] = 1 / line.seconds(made, seconds), 1 / seconds
    return [
        Row(name=name, estimate=values[0], result=values[1], available=None)
        for name, values in ((f"{SEEN} at {line.baud:,} baud", seen), (ALONE, core))
    ]


def _placed(job: Job) -> dict[str, Any]:
    placed = logs.parse((job.folder / "place.json").read_text(encoding="utf-8"), name="place.json")
    seeds = job.json("seeds.json")
    cells = families.of(job.board).cells
    return {"resources": logs.resources(placed, cells), "timing": logs.timing(placed, **seeds)}


def _board(job: Job) -> facts.Board:
    board = job.board
    return facts.Board(
        name=board.name,
        title=board.title,
        fabric=board.device if board.family else "",
        clock_hz=job.clock_hz,
        available={kind: getattr(board, name) for kind, name in _estimated(job).items()},
    )


def _estimated(job: Job) -> dict[str, str]:
    """The kinds of cells that sizing estimates, with the field of `Board` for each."""
    return {} if job.board.family is None else families.of(job.board).estimated


def _fit(job: Job) -> facts.Fit:
    sized = job.json("core.json")
    guess = sized["estimate"] or {}
    return facts.Fit(
        fits=True,
        resources={kind: guess[name] for kind, name in _estimated(job).items()},
        fmax_hz=guess.get("fmax_hz") or None,
        cycles=sized["cycles"],
        remark=Activity(**sized["activity"]).remark,
    )


def _bitstream(job: Job) -> tuple[str, ...]:
    """The results of the steps `bits` and `prove`, as sentences."""
    if job.board.family is None:
        return ()
    found = job.json("bits.json")
    if "skipped" in found:
        return (f"The bitstream was not decoded, because {found['skipped']}.",)
    undecoded = [f"Not decoded: {part}." for part in found["undecoded"]]
    proofs = [
        f"The bitstream, simulated: {done.note}." for done in job.outcomes if done.step == "prove"
    ]
    return (f"The bitstream, decoded: {found['summary']}.", *undecoded, *proofs)


def _answers(job: Job, macs: int) -> facts.Answers | None:
    """The network's answers to labelled images: as many images as golden can run in seconds."""
    count = max(job.options.images, min(TESTED, WORK // max(macs, 1)))
    samples, drawn_of = job.labelled(count)
    if samples.labels is None:
        return None
    if job.network.input.static:
        classes = golden.run(job.network, samples.images).classes
    else:
        classes = early.logits_by_step(job.network, samples.images).argmax(axis=-1)
    return collect.answers(job.network, samples, classes, drawn_of=drawn_of)


def _link(job: Job) -> facts.Link:
    line = line_of(job.board, job.clock_hz)
    ran = job.json("simulate.json")
    cycles = ran.get("cycles", job.json("check.json")["cycles"])  # without Verilator: predicted
    pace = line.pace(job.opening, clock_hz=job.clock_hz, cycles=cycles)
    made = estimate.traffic(job.program, job.images.raw[0], pace=pace)
    return facts.Link(
        baud=line.baud,
        latency=line.latency,
        bytes=made.bytes,
        turns=made.turns,
        gap=made.gap,
    )


def _build(job: Job) -> facts.Build:
    tools = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    used = ["verilator"]
    if job.board.family is not None:
        family = families.of(job.board)
        used += ["yosys", family.placer.name, family.packer.name]
    for name in used:
        found = locate(name)
        if found is not None:
            tools[name] = found.version
    packed = sorted(path for path in (job.folder / "package").rglob("*") if path.is_file())
    return facts.Build(
        tools=tools,
        digests=collect.digests(packed),
        steps=tuple(
            facts.Step(name=done.step, seconds=done.seconds, cached=done.cached, beside=done.beside)
            for done in job.outcomes
        ),
        elapsed=time.monotonic() - job.began,
        seed=job.json("seeds.json")["seed"] if job.board.family is not None else None,
        baked=job.json("rtl.json")["baked"] if job.board.family is not None else None,
        bitstream=_bitstream(job),
        next=tuple(next_commands(job)),
    )
