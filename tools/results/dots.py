"""The figure of the ablation: one dot per seed, one line per neuron."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt

from lbq_hw.train.figures import BLUE, ORANGE, STYLE

COLORS = {"none": "#333333", "0.25": BLUE, "1": ORANGE}
SPLIT = 91.5  # percent: rows below it have a panel of their own, which spreads the other rows


def draw(facts: Sequence[Mapping[str, Any]], path: Path, *, note: str) -> None:
    """Write one SVG file with `note` as its description."""
    matplotlib.use("Agg")
    steps = sorted({step for row in facts for step in row["accuracy"]})
    every = [x for row in facts for same in row["accuracy"].values() for x in same]
    edges = [(min(min(every), SPLIT) - 0.5, SPLIT), (SPLIT, max(max(every), SPLIT) + 0.25)]
    with plt.rc_context(STYLE):
        size = (9, 1.2 + 0.24 * len(facts))
        canvas, panels = plt.subplots(
            1, 2, figsize=size, sharey=True, width_ratios=(1, 3), layout="constrained"
        )
        for axes, limits in zip(panels, edges, strict=True):
            axes.set_axisbelow(True)
            for step in steps:
                found = [
                    (x, place)
                    for place, row in enumerate(facts)
                    for x in row["accuracy"].get(step, ())
                    if limits[0] <= x < limits[1]
                ]
                label = "no step" if step == "none" else f"first step {step}"
                xs, ys = zip(*found, strict=True) if found else ((), ())
                color = COLORS.get(step, "#7a7a7a")
                axes.scatter(xs, ys, s=22, color=color, alpha=0.75, linewidths=0, label=label)
            axes.set(xlim=limits, xlabel="test accuracy, %")
        panels[0].set_yticks(range(len(facts)), [row["row"] for row in facts])
        panels[0].invert_yaxis()
        panels[1].legend(frameon=False, loc="upper left")
        canvas.savefig(path, metadata={"Date": None, "Description": note})
        plt.close(canvas)
