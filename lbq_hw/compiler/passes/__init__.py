"""Networks whose weights lie in external memory: how layers are cut into passes, and the cost.

`demand` is what layers ask for, which `blocks` finds; `split` cuts them, `placing` finds places for
what a pass needs, `planner` chooses by the schedule of `lbq_hw.cycles`. docs/external-memory.md has
the design.
"""

from lbq_hw.compiler.passes.planner import LayerPlan, Plan, PlanError, plan
from lbq_hw.compiler.passes.split import Room

__all__ = ["LayerPlan", "Plan", "PlanError", "Room", "plan"]
