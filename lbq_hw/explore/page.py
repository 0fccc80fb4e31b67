"""The page of an exploration: one HTML file that needs no other file, in the report's style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jinja2

from lbq_hw import units
from lbq_hw.explore.picture import picture
from lbq_hw.explore.table import clock, placed_cells, placed_clock
from lbq_hw.report.quantities import percent

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.ChoiceLoader(
        [jinja2.PackageLoader("lbq_hw.explore"), jinja2.PackageLoader("lbq_hw.report")]
    ),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(
    percent=percent,
    time=units.seconds,
    rate=lambda seconds: units.three_digits(1 / seconds),
    clock=clock,
    placed_cells=placed_cells,
    placed_clock=placed_clock,
    mbaud=lambda baud: f"{baud / 1e6:g}",
)


def render(networks: Sequence[dict[str, Any]], *, refused: dict[str, list[str]]) -> str:
    """The page with the facts of `results.facts`; `refused` has the boards that no core fits, by
    network.
    """
    shown = []
    for one in networks:
        if lines := [line for line in one["points"] if line["shown"]]:
            shown.append(one | {"points": lines, "picture": picture(lines)})
    return _ENVIRONMENT.get_template("exploration.html").render(networks=shown, refused=refused)
