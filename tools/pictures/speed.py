"""Accuracy against time per image for each build, as a host sees it and for the core alone."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lbq_hw import units
from tools.pictures.svg import ACCENT, INK, PALE, SECOND, drawing, line, text

_WIDTH, _LEFT, _RIGHT, _TOP, _PLOT = 860, 60, 840, 50, 300
_ROW = 19  # of the list below the plot


@dataclass(frozen=True, kw_only=True)
class Build:
    """A build in the picture; times are seconds per image."""

    board: str
    model: str
    accuracy: float
    seen: float
    core: float


def read(folder: Path) -> list[Build]:
    """The builds of a folder of summaries, best accuracy first. ValueError if there is none."""
    found = []
    for path in sorted(folder.glob("*.json")):
        facts = json.loads(path.read_text("utf-8"))
        seen, core = (facts[f"images_per_second{tail}"] for tail in ("", "_core"))
        accuracy = facts["accuracy"]
        found.append(
            Build(
                board=facts["board"],
                model=facts["model"],
                accuracy=accuracy,
                seen=1 / seen,
                core=1 / core,
            )
        )
    if not found:
        raise ValueError(f"{folder} must hold summaries of builds")
    return sorted(found, key=lambda build: (-build.accuracy, build.seen))


def _tick(power: int) -> str:
    """``10 us``: a power of ten."""
    return units.seconds(10.0**power).replace(".00", "").replace(".0", "")


def picture(builds: Sequence[Build]) -> str:
    """The plot, with a list of its points below."""
    times = [time for build in builds for time in (build.seen, build.core)]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    least = math.floor(min(build.accuracy for build in builds))

    def x(time: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (math.log10(time) - low) / max(high - low, 1)

    def y(accuracy: float) -> float:
        return _TOP + _PLOT * (100 - accuracy) / (100 - least)

    bottom = _TOP + _PLOT
    parts = [text(_LEFT, 24, "Accuracy and time per image, by board", size=16, bold=True)]
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(line(at, _TOP, at, bottom, stroke="#e4e7eb"))
        parts.append(text(at, bottom + 18, _tick(power), anchor="middle", size=12))
    for percent in range(least, 101, 2 if 100 - least > 6 else 1):
        parts.append(line(_LEFT, y(percent), _RIGHT, y(percent), stroke="#e4e7eb"))
        parts.append(text(_LEFT - 8, y(percent) + 4, f"{percent} %", anchor="end", size=12))
    for number, build in enumerate(builds, 1):
        at, core, height = x(build.seen), x(build.core), y(build.accuracy)
        parts.append(line(core, height, at, height))
        parts.append(f"<circle cx='{core:g}' cy='{height:g}' r='4' fill='{SECOND}'/>")
        parts.append(f"<circle cx='{at:g}' cy='{height:g}' r='9' fill='{ACCENT}' stroke='#fff'/>")
        parts.append(text(at, height + 4, str(number), fill="#fff", anchor="middle", size=11))
    key = bottom + 44
    parts += [
        f"<circle cx='{_LEFT + 8}' cy='{key - 4}' r='9' fill='{ACCENT}'/>",
        text(_LEFT + 24, key, "as a host sees it, over the serial line"),
        f"<circle cx='{_LEFT + 330}' cy='{key - 4}' r='4' fill='{SECOND}'/>",
        text(_LEFT + 344, key, "the core alone"),
    ]
    for number, build in enumerate(builds, 1):
        row = key + 14 + _ROW * number
        parts += [
            text(_LEFT + 12, row, f"{number}", anchor="end", fill=ACCENT, bold=True),
            text(_LEFT + 24, row, build.board, fill=INK),
            text(_LEFT + 150, row, build.model),
            text(_LEFT + 470, row, f"{build.accuracy:.2f} %", anchor="end"),
            text(_LEFT + 570, row, units.seconds(build.seen), anchor="end"),
            text(_LEFT + 670, row, units.seconds(build.core), anchor="end", fill=PALE),
        ]
    height = key + 14 + _ROW * (len(builds) + 1)
    return drawing(_WIDTH, height, "Accuracy against time per image of every build", *parts)
