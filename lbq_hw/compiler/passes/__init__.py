"""Divides a program into passes, and places their records, weights and parameters.

A core that holds the whole network has one pass per layer (`whole`). A network with its weights in
external memory is cut: `blocks` finds the weight rows and events of each layer (a `demand`),
`split` lists the ways to cut a layer, `placing` allocates memory for a pass, and `planner` chooses
by the schedule of `lbq_hw.cycles`. docs/external-memory.md has the design.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbq_hw.chips.timing import ReaderTiming, default_timing
from lbq_hw.compiler.passes.blocks import pass_room
from lbq_hw.compiler.passes.placed import LayerPlan, Plan
from lbq_hw.compiler.passes.planner import PlanError, cut
from lbq_hw.compiler.passes.split import Room
from lbq_hw.compiler.passes.whole import whole
from lbq_hw.config import CoreConfig

if TYPE_CHECKING:
    from lbq_hw.compiler.draft import Draft

__all__ = ["LayerPlan", "Plan", "PlanError", "Room", "cut", "plan"]


def plan(drafted: Draft, config: CoreConfig, timing: ReaderTiming | None = None) -> Plan:
    """The passes of a network; `timing` of the external memory. PlanError if it cannot be cut."""
    if not config.external:
        return whole(drafted.layers, config)
    timing = timing or default_timing(config.external)
    return cut(drafted.demands, config, pass_room(config), timing)
