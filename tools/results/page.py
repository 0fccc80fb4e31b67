"""The page of details: each section is made from its own JSON, or says what is missing."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from lbq_hw import zoo
from lbq_hw.markdown import table
from tools.bench_gpu.profile import table as kinds
from tools.results import ablation, costs, events, layers, runs
from tools.results.store import Results, Run
from tools.results.text import paragraph

COMMANDS = "commands.sh"


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page: `make` returns None without its files, and the page then has the text
    `missing`. The note of the section follows, unless `note_first`.
    """

    title: str
    make: Callable[[Results], str | None]
    missing: str
    note_first: bool = False


def page(results: Results) -> str:
    """The whole page, as Markdown."""
    folder = results.folder.name
    unknown = results.notes.keys() - SECTIONS.keys()
    if unknown:
        raise ValueError(f"notes.json must have keys of {', '.join(SECTIONS)}, not {unknown!r}")
    parts = [
        "# Results in detail: ResNet-20 on CIFAR-10 and CIFAR-100, and smaller networks\n",
        f"<!-- made by python -m tools.results docs/{folder}; change the JSON, not this file -->\n",
        paragraph(
            f"Ours beside the paper's; the [first page](../{folder}.md) has what matters most.",
            "Every number comes from the JSON files beside this one.",
        ),
    ]
    for key, section in SECTIONS.items():
        parts.append(f"## {section.title}\n")
        made = [section.make(results) or paragraph(section.missing)]
        if key in results.notes:
            made.insert(0 if section.note_first else 1, paragraph(results.notes[key]))
        parts += made
    return "\n".join(parts)


def _steps(results: Results) -> str | None:
    bench = results.bench
    if bench is None:
        return None
    steps = []
    for row in bench["steps"]:
        if row["ms"] is None:
            steps.append((row["name"], row["note"], "", "", ""))
            continue
        name = f"{row['name']} ({row['note']})" if row.get("note") else row["name"]
        spread = f"{min(row['rounds_ms']):.2f} to {max(row['rounds_ms']):.2f}"
        target = f"{row['target']:g}" if row["target"] else ""
        steps.append((name, f"{row['ms']:.2f}", spread, f"{row['ratio']:.2f}", target))
    kernels = []
    for row in bench["neurons"]:
        for name in ("copy", "forward", "backward"):
            found = row[name]
            share = f"{100 * found['of_copy']:.0f} %" if "of_copy" in found else ""
            speed = f"{found['gb_per_s']:,.0f}"
            kernels.append((f"{name}, T = {row['timesteps']}", f"{found['ms']:.3f}", speed, share))
    headings = ("", "ms", "of rounds", "over the ANN", "target, at most")
    least = f"{100 * bench['target_fraction']:.0f} %"
    return "\n".join(
        (
            paragraph(
                f"One optimizer step at batch {bench['batch']}, augmentation included, on one",
                f"{bench['device']} with torch {bench['torch']}: medians of the rounds of one run.",
                "Norm, sum and neuron are one kernel unless a row has the neuron alone.",
            ),
            table(headings, steps),
            paragraph(
                "The neuron's kernels against a copy of the same tensor, whose bandwidth is their",
                f"ceiling; the target is {least} of it.",
            ),
            table(("", "ms", "GB/s", "of a copy"), kernels),
            *_profile(results),
        )
    )


def _profile(results: Results) -> list[str]:
    """Lines on how steps spend their time, if this was measured."""
    if results.profile is None:
        return []
    found = results.profile
    return [
        paragraph(
            f"Where a step's time goes, from a profile of its kernels at batch {found['batch']} on",
            f"one {found['device']} with torch {found['torch']}, in a run of its own. Steps are",
            "timed without the profiler, and wait between kernels too.",
        ),
        table(*kinds(found["profile"])),
    ]


def _again(results: Results) -> str | None:
    if not results.runs:
        return None
    return paragraph(
        f"[{COMMANDS}]({COMMANDS}) has the command of every run, first those that others begin",
        "with, and what made the files of this page.",
    )


def commands(results: Results) -> str:
    """A script with the command of each run, each after the run from which it starts, and then the
    commands that make the page's files.
    """
    folder = f"docs/{results.folder.name}"
    runs = sorted(results.runs.items(), key=lambda item: bool(item[1].init))
    lines = [_command(run, f"runs/{name}") for name, run in runs]
    for name, run in runs:
        lines.append(f"python -m tools.results {folder}/runs --collect runs/{name}")
        if results.nets_of(name):
            lines += [
                f"python -m train.export runs/{name} --out {name}.lbq",
                f"python -m train.measure {name}.lbq --data $DATA/{run.dataset} --run runs/{name} "
                f"--compare-golden 50 --out {folder}/measured/{name}.json",
            ]
    for kind, rows in results.ablations.items():
        made = kind == "ablation"  # one command makes all, except neurons that it does not have
        if made and rows:
            epochs = next(iter(rows.values())).epochs
            lines.append(f"make ablation DATA=$DATA ARGS='--set train.epochs={epochs}'")
        lines += [
            _command(run, f"runs/{kind}/{name}")
            for name, run in rows.items()
            if run.neuron_changes or not made
        ]
        lines.append(f"python -m tools.results {folder}/{kind} --collect runs/{kind}/*")
    lines += [f"make bench-gpu ARGS='--json {folder}/bench-gpu.json'"] if results.bench else []
    profile = f"make bench-gpu ARGS='--profile --json {folder}/profile-gpu.json'"
    lines += [profile] if results.profile else []
    lines.append(f"python -m tools.results {folder}")
    head = ["#!/bin/sh", "# Made by python -m tools.results; $DATA/NAME holds the dataset NAME."]
    return "\n".join([*head, "set -e", *lines, ""])


def _command(run: Run, out: str) -> str:
    words = [f"python -m train --config {run.name}"]
    words += [f"--set {shlex.quote(change)}" for change in run.changes]
    start = run.init if run.init in zoo.names() else f"runs/{run.init}"
    words += [f"--set train.init={start}"] if run.init else []
    return " ".join([*words, f"--data $DATA/{run.dataset}", f"--out {out}"])


SECTIONS = {
    "accuracy": Section(
        title="Accuracy",
        make=runs.accuracy,
        missing="Left out: no run was collected with `python -m tools.results`.",
    ),
    "costs": Section(
        title="Cost",
        make=costs.section,
        missing="Left out: no network of T = 2 was measured with `python -m train.measure`.",
    ),
    "events": Section(
        title="Events in the loss",
        make=events.section,
        missing="Left out: no run with `train.activity` was collected.",
    ),
    "layers": Section(
        title="Layers",
        make=layers.section,
        missing="Left out: no such network with N = 5 was measured.",
    ),
    "ablation": Section(
        title="Ablation",
        make=ablation.section,
        note_first=True,
        missing="Left out: no run was collected with `python -m tools.results`.",
    ),
    "recipes": Section(
        title="Recipes",
        make=runs.recipes,
        missing="Left out: no run with validation images was collected.",
    ),
    "steps": Section(
        title="Training steps",
        make=_steps,
        missing="Left out: nothing was timed with `make bench-gpu`.",
    ),
    "commands": Section(
        title="The same again",
        make=_again,
        missing="Left out: no run was collected.",
    ),
}
