"""Two figures of the first page: accuracy against additions, and activity by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt

from lbq_hw.train.figures import STYLE

MARKS = {"paper": ("*", "#333333", 90), "ours": ("o", None, 34)}


def draw_additions(facts: Sequence[Mapping[str, Any]], path: Path, *, note: str) -> None:
    """A dot per network, and a bar from the least to the largest accuracy of its seeds."""
    matplotlib.use("Agg")
    with plt.rc_context(STYLE):
        canvas, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
        for group in dict.fromkeys(fact["group"] for fact in facts):
            mark, color, size = MARKS.get(group, MARKS["ours"])
            same = [fact for fact in facts if fact["group"] == group]
            xs, ys = [fact["acs"] / 1e6 for fact in same], [fact["accuracy"] for fact in same]
            dots = axes.scatter(xs, ys, s=size, marker=mark, color=color, label=group)
            for x, y, fact in zip(xs, ys, same, strict=True):
                axes.annotate(
                    fact["name"], (x, y), xytext=(5, 3), textcoords="offset points", fontsize=7
                )
                shade = dots.get_facecolor()[0]
                axes.vlines(x, fact["least"], fact["most"], color=shade, linewidth=1.2)
        axes.set(xlabel="bit-sparse additions per image, millions", ylabel="accuracy, %")
        axes.legend(frameon=False, fontsize=8, loc="lower right")
        canvas.savefig(path, metadata={"Date": None, "Description": note})
        plt.close(canvas)


def draw_activity(facts: Sequence[Mapping[str, Any]], path: Path, *, note: str) -> None:
    """The active ratio of every layer, a line per neuron."""
    matplotlib.use("Agg")
    with plt.rc_context(STYLE):
        canvas, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
        for fact in facts:
            axes.plot(fact["active"], marker="o", markersize=3, linewidth=1, label=fact["row"])
        names = facts[0]["layers"]
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=6)
        axes.set(ylabel="active ratio", ylim=(0, None))
        axes.legend(frameon=False, fontsize=7, ncols=2)
        canvas.savefig(path, metadata={"Date": None, "Description": note})
        plt.close(canvas)
