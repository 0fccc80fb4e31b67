"""Training curves: the loss by epoch of runs of the ablation, and of the zoo's large network."""

from __future__ import annotations

import json
from statistics import mean
from typing import Any

from lbq_hw import zoo
from tools.results import ablation
from tools.results.store import Results

FIGURE = "curves.svg"
LARGE = "cifar10-resnet20"


def facts(results: Results) -> list[dict[str, Any]]:
    """The data of the figure: panels of lines. A line of the ablation is the mean over the runs of
    a row whose curves were kept.
    """
    if not results.curves:
        return []
    text = zoo.find(LARGE).with_suffix(".metrics.jsonl").read_text(encoding="utf-8")
    losses = [round(json.loads(line)["loss"], 3) for line in text.splitlines()]
    panels = [{"panel": "ResNet-20, the paper's width", "lines": {f"LBQ, {LARGE}": losses}}]
    names = {id(run): name for runs in results.ablations.values() for name, run in runs.items()}
    for step in (0.25, 1.0):
        lines: dict[str, list[float]] = {}
        for row in ablation.dots_of(results):
            kept = [names[id(run)] for run in row.runs if names[id(run)] in results.curves]
            if row.method in ablation.SQUARE and row.papers and row.first_step == step and kept:
                each = zip(*(results.curves[name] for name in kept), strict=True)
                lines[row.label] = [round(mean(values), 4) for values in each]
        if lines:
            panels.append({"panel": f"half width, first step {step:g}", "lines": lines})
    return panels
