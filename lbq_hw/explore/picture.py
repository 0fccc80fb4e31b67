"""The picture: time per image at the host against cells, both on logarithmic axes.

Places along x are shares of the width and heights are pixels, as in the report's charts: the
picture fills any width, and its text stays the size of text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lbq_hw import boards, units

HEIGHT = 420
_TOP, _BOTTOM, _LEFT, _RIGHT = 14, 34, 0.12, 0.97
_STEPS = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 4, 5, 6, 8), tuple(n / 10 for n in range(10, 100, 5)))
_FEW = 3  # ticks; fewer do not define an axis


def picture(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Dots, measured rings, steps of each board's front, and ticks, for the template."""
    times = [line["seconds"] for line in lines]
    cells = [float(line["luts"]) for line in lines]
    for line in lines:
        if (placed := line["placed"]) is not None and placed["error"] is None:
            times.append(placed["seconds"])
            cells.append(float(placed["luts"]))
    across, up = _Axis(times), _Axis(cells)

    def at(seconds: float, luts: float) -> dict[str, float]:
        x = _LEFT + (_RIGHT - _LEFT) * across.share(seconds)
        return {"x": x, "y": HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * up.share(luts)}

    dots = []
    for number, line in enumerate(lines, 1):
        dot: dict[str, Any] = at(line["seconds"], line["luts"]) | {
            "family": boards.find(line["board"]).family,
            "number": number if line["front"] else None,
            "title": f"{line['board']}, {line['lanes']} lanes: "
            f"{units.seconds(line['seconds'])}, {line['luts']:,} cells",
            "ring": None,
        }
        if (placed := line["placed"]) is not None and placed["error"] is None:
            dot["ring"] = at(placed["seconds"], placed["luts"])
            dot["title"] += f"; placed {placed['luts']:,} cells"
        dots.append(dot)
    return {
        "height": HEIGHT,
        "bottom": HEIGHT - _BOTTOM,
        "left": _LEFT,
        "right": _RIGHT,
        "dots": dots,
        "stairs": _stairs([at(p["seconds"], p["luts"]) for p in lines if p["front"]]),
        "columns": [(at(tick, cells[0])["x"], units.seconds(tick)) for tick in across.ticks],
        "rows": [(at(times[0], tick)["y"], units.si(tick)) for tick in up.ticks],
    }


def _stairs(front: Sequence[dict[str, float]]) -> list[tuple[float, float, float, float]]:
    """The border of the area that the front dominates: lines between its points, continued to the
    right.
    """
    found = []
    for one, after in zip(front, [*front[1:], None], strict=True):
        right = _RIGHT if after is None else after["x"]
        found.append((one["x"], one["y"], right, one["y"]))
        if after is not None:
            found.append((right, one["y"], right, after["y"]))
    return found


class _Axis:
    """A logarithmic axis with some room at both ends. Its ticks are as coarse as possible."""

    def __init__(self, values: Sequence[float]) -> None:
        self._low, self._high = min(values) / 1.15, max(values) * 1.15
        decades = range(math.floor(math.log10(self._low)), math.ceil(math.log10(self._high)) + 1)
        self.ticks: list[float] = []
        for steps in _STEPS:
            ticks = [step * 10.0**decade for decade in decades for step in steps]
            self.ticks = [tick for tick in ticks if self._low <= tick <= self._high]
            if len(self.ticks) >= _FEW:
                break

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        return math.log(value / self._low) / math.log(self._high / self._low)
