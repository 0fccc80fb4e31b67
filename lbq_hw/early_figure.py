"""The plot of ``lbq evaluate --early --picture``: accuracy against timesteps."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def save(result: dict[str, Any], path: Path) -> None:
    """Plot the output of ``lbq evaluate --early --json``; the suffix of `path` sets the format."""
    if "early" not in result:
        raise ValueError("--picture draws what --early finds: give both")
    import matplotlib.figure  # only this option needs it

    found = result["early"]
    curve, test = found["accuracy_by_step"], found["test"]
    figure = matplotlib.figure.Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(curve) + 1), curve, label="all stopped after as many timesteps")
    axes.plot(
        test["mean_steps"], test["accuracy"], "o", label=f"stopped at a lead of {test['margin']:,}"
    )
    axes.set_xlabel("timesteps")
    axes.set_ylabel("right, %")
    axes.set_title(f"{result['model']} on {result['images']:,} inputs")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)
