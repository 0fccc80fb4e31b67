"""The layer figures of the method, drawn from the facts that :mod:`train.analyze` finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

FIGURES = ("gamma.png", "selectivity.png", "levels.png")
BLUE, ORANGE = "#2456a6", "#d9701e"


STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.dpi": 150,
    "font.size": 9,
    "font.family": ["DejaVu Sans"],
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "lbq",  # equal figures are equal files
}


def draw(facts: Mapping[str, Any], folder: Path) -> None:
    """The three figures, one file each."""
    matplotlib.use("Agg")
    with plt.rc_context(STYLE):
        for name, figure in zip(FIGURES, (_gamma, _selectivity, _levels), strict=True):
            canvas, axes = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
            axes.set_axisbelow(True)
            figure(axes, facts)
            canvas.savefig(folder / name)
            plt.close(canvas)


def draw_row(facts: Mapping[str, Any], path: Path, *, note: str) -> None:
    """The three figures side by side in one SVG file with `note` as its description."""
    matplotlib.use("Agg")
    with plt.rc_context(STYLE):
        canvas, row = plt.subplots(1, 3, figsize=(13, 3.4), layout="constrained")
        for axes, figure in zip(row, (_gamma, _selectivity, _levels), strict=True):
            axes.set_axisbelow(True)
            figure(axes, facts)
        canvas.savefig(path, metadata={"Date": None, "Description": note})
        plt.close(canvas)


def _gamma(axes: Any, facts: Mapping[str, Any]) -> None:
    gammas = [layer["gamma"] for layer in facts["layers"]]
    axes.plot(range(1, len(gammas) + 1), gammas, marker="o", color=BLUE)
    axes.set(xlabel="neuron layer", ylabel="step $\\gamma$", ylim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(f"learned step, coefficient of variation {facts['summary']['gamma_cv']:.2f}")


def _selectivity(axes: Any, facts: Mapping[str, Any]) -> None:
    points = [(layer["active_ratio"], layer["entropy"]) for layer in facts["layers"]]
    axes.scatter(*zip(*points, strict=True), s=18, color=BLUE, label="one layer")
    mean = facts["summary"]
    axes.scatter(mean["active_ratio"], mean["entropy"], s=90, color=ORANGE, label="mean")
    axes.set(xlabel="active ratio", ylabel="normalized conditional entropy", ylim=(0, 1.02))
    axes.set(xlim=(0, None), title="how often, and how variously, neurons fire")
    axes.legend(frameon=False, loc="lower right")


def _levels(axes: Any, facts: Mapping[str, Any]) -> None:
    layers = facts["layers"]
    depth = max(len(layer["distribution"]) for layer in layers)
    colors = plt.get_cmap("viridis")(np.linspace(0.15, 0.95, depth))
    places, below = np.arange(1, len(layers) + 1), np.zeros(len(layers))
    for k in range(depth):
        share = np.array([(*layer["distribution"], *[0.0] * depth)[k] for layer in layers])
        axes.bar(places, share, bottom=below, color=colors[k], label=f"k = {k + 1}")
        below += share
    axes.set(xlabel="neuron layer", ylabel="P(k | k > 0)", title="levels of active neurons")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False)
