"""Figures of the first page: additions, activity by layer, training curves, surrogates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from lbq_hw.train.figures import STYLE

# Offset in points from a dot to its name, and the name's alignment there: best first.
_SPOTS = (
    ((0, 5), "center", "bottom"),
    ((0, -5), "center", "top"),
    ((6, 0), "left", "center"),
    ((-6, 0), "right", "center"),
    ((4, 8), "left", "bottom"),
    ((-4, -8), "right", "top"),
)
MARKS = {"paper": ("*", "#333333", 90), "ours": ("o", None, 34)}


def draw_additions(facts: Sequence[Mapping[str, Any]], path: Path, *, note: str) -> None:
    """One dot per network, with a bar from the smallest to the largest accuracy of its seeds. Dots
    of one group that differ in the weight of events are joined.
    """
    with _figure(path, note, size=(8.4, 4.6)) as axes:
        names: list[Annotation] = []
        for group in dict.fromkeys(fact["group"] for fact in facts):
            mark, color, size = MARKS.get(group, MARKS["ours"])
            same = sorted((f for f in facts if f["group"] == group), key=lambda f: f["acs"])
            xs, ys = [fact["acs"] / 1e6 for fact in same], [fact["accuracy"] for fact in same]
            dots = axes.scatter(xs, ys, s=size, marker=mark, color=color, label=group, zorder=3)
            shade = dots.get_facecolor()[0]
            if "events" in group and "fewer" not in group:
                axes.plot(xs, ys, color=shade, linewidth=0.8, alpha=0.6)
            for x, y, fact in zip(xs, ys, same, strict=True):
                axes.vlines(x, fact["least"], fact["most"], color=shade, linewidth=1.2)
                names.append(_named(axes, fact["name"], (x, y), shade))
        axes.set(xlabel="bit-sparse additions per image, millions", ylabel="accuracy, %")
        axes.legend(frameon=False, fontsize=8, loc="lower center")
        axes.figure.draw_without_rendering()  # the layout moves the dots
        _separate(names)


def draw_activity(facts: Sequence[Mapping[str, Any]], path: Path, *, note: str) -> None:
    """The active ratio of every layer, a line per neuron."""
    with _figure(path, note, size=(9.4, 3.6)) as axes:
        for fact in facts:
            axes.plot(fact["active"], marker="o", markersize=3, linewidth=1, label=fact["row"])
        names = facts[0]["layers"]
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=6)
        axes.set(ylabel="active ratio", ylim=(0, None))
        axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_curves(facts: Sequence[Mapping[str, Any]], path: Path, *, note: str) -> None:
    """The training loss by epoch, a panel per budget and first step."""
    with _figure(path, note, size=(11, 3.4), columns=len(facts)) as row:
        for axes, fact in zip(row, facts, strict=True):
            for name, losses in fact["lines"].items():
                axes.plot(range(1, len(losses) + 1), losses, linewidth=1, label=name)
            axes.set(xlabel="epoch", title=fact["panel"], ylim=(0, 2.3))
            axes.legend(frameon=False, fontsize=6.5)
        row[0].set(ylabel="training loss, augmented images")


def draw_surrogates(facts: Mapping[str, Any], path: Path, *, note: str) -> None:
    """The slope of each surrogate over the membrane in steps."""
    with _figure(path, note, size=(7, 2.8)) as axes:
        for name, slopes in facts.items():
            if name != "u":
                axes.plot(facts["u"], slopes, linewidth=1.2, label=name)
        axes.set(xlabel="membrane U / step", ylabel="surrogate of d out / dU", ylim=(0, 1.08))
        axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _named(axes: Any, name: str, dot: tuple[float, float], color: Any) -> Annotation:
    return axes.annotate(
        name, dot, xytext=(0, 0), textcoords="offset points", fontsize=7, color=color
    )


def _separate(names: Sequence[Annotation]) -> None:
    """Put each name at the first spot where it overlaps no dot and no other name; at the last spot
    if there is none.
    """
    taken: list[Any] = []
    for name in names:
        assert name.axes is not None
        x, y = name.axes.transData.transform(name.xy)
        taken.append(Bbox.from_bounds(x - 4, y - 4, 8, 8))
    for name in filter(Annotation.get_text, names):
        for offset, across, along in _SPOTS:
            name.set(position=offset, horizontalalignment=across, verticalalignment=along)
            if not any(name.get_window_extent().overlaps(other) for other in taken):
                break
        taken.append(name.get_window_extent())


@contextmanager
def _figure(path: Path, note: str, *, size: tuple[float, float], columns: int = 1) -> Iterator[Any]:
    """Axes, or a row of axes, for an SVG file with `note` as its description."""
    matplotlib.use("Agg")
    with plt.rc_context(STYLE):
        canvas, axes = plt.subplots(
            1, columns, figsize=size, layout="constrained", squeeze=columns == 1
        )
        yield axes if columns == 1 else axes[0]
        canvas.savefig(path, metadata={"Date": None, "Description": note})
        plt.close(canvas)
