"""``python -m tools.bench_gpu``: the figures as a table, and the times that exceed their targets.

With ``--profile``: how a step spends its time; there are no targets for this.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.train.kernels import recurrence_jit
from tools.bench_gpu import measure, profiled
from tools.bench_gpu.clock import QUICK, Effort
from tools.bench_gpu.neuron import TARGET_FRACTION
from tools.bench_gpu.profile import table as kinds_table


def show(report: dict[str, Any]) -> Table:
    """Everything in one table."""
    table = Table(title=f"ResNet-20, batch {report['batch']}, {report['device']}")
    for column in ("", "ms", "of", "target"):
        table.add_column(column, justify="right" if column else "left")
    for row in report["steps"]:
        if row["ms"] is None:
            table.add_row(f"step, {row['name']}", row["note"])
            continue
        low, high = min(row["rounds_ms"]), max(row["rounds_ms"])
        target = f"<= {row['target']:g}" if row["target"] else ""
        note = f" ({row['note']})" if "note" in row else ""
        spread = f"{row['ms']:.2f} ({low:.2f} to {high:.2f})"
        table.add_row(f"step, {row['name']}{note}", spread, f"{row['ratio']:.2f} ANN", target)
    for row in report["neurons"]:
        table.add_section()
        timesteps, copy = row["timesteps"], row["copy"]
        name = f"copy, T = {timesteps}, {row['bytes'] / 1e6:.0f} MB"
        table.add_row(name, f"{copy['ms']:.3f}", f"{copy['gb_per_s']:.0f} GB/s")
        for name in ("forward", "backward"):
            share = f"{100 * row[name]['of_copy']:.0f} % of copy"
            target = f">= {100 * TARGET_FRACTION:.0f} %"
            table.add_row(
                f"neuron {name}, T = {timesteps}", f"{row[name]['ms']:.3f}", share, target
            )
    return table


def show_profile(report: dict[str, Any]) -> Table:
    """Time per kind of kernel and network. Whole steps are timed separately, and include the waits
    between kernels.
    """
    headings, lines = kinds_table(report["profile"])
    shown = Table(title=f"A step's kernels: ResNet-20, batch {report['batch']}, {report['device']}")
    for heading in headings:
        shown.add_column(heading, justify="right" if heading else "left")
    for line in lines:
        shown.add_row(*line)
    shown.rows[-3].end_section = True
    return shown


def missed(report: dict[str, Any]) -> list[str]:
    """A line for each time that exceeds its target."""
    names = [
        f"the step of {row['name']}"
        for row in report["steps"]
        if row["target"] and row["ratio"] > row["target"]
    ]
    for row in report["neurons"]:
        names += [
            f"neuron {name} at T = {row['timesteps']}"
            for name in ("forward", "backward")
            if row[name]["of_copy"] < TARGET_FRACTION
        ]
    return names


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m tools.bench_gpu",
        description="Time training steps and neuron kernels on the GPU; exits 1 if one is over"
        " its target. Run it on a machine with a CUDA GPU that does nothing else.",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--quick", action="store_true", help="only T = 2, with few repetitions")
    parser.add_argument(
        "--profile",
        action="store_true",
        help="instead, show by kinds of kernels where the steps of the ANN and of LBQ at T = 2 and "
        "4 spend their time",
    )
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available() or recurrence_jit.triton is None:
        lack = "Triton" if torch.cuda.is_available() else "a CUDA GPU, and torch sees none"
        return ending.refuse(f"the benchmark needs {lack}")
    console = Console()
    find, display = (profiled, show_profile) if options.profile else (measure, show)
    with console.status("compiling and timing networks, a few minutes"):
        report = find(QUICK if options.quick else Effort(), torch.device("cuda"))
    console.print(display(report))
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    slow = [] if options.profile else missed(report)
    if slow:
        console.print(f"over target: {', '.join(slow)}")
    return 1 if slow else 0
