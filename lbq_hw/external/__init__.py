"""Networks whose weights lie in external memory: how layers are cut into passes, and the cost.

`demand` is what layers ask for, `split` cuts them, `placing` finds places for what a pass needs,
`reader` and `schedule` say when words arrive and passes run, `planner` chooses. `lbq_hw.compiler`
makes the tape from the plan. docs/external-memory.md has the design; ``python -m
lbq_hw.external --help`` prints the budget of a network.
"""

from lbq_hw.external.planner import LayerPlan, Plan, PlanError, plan
from lbq_hw.external.reader import TANG_NANO_20K, ULX3S, ReaderTiming, default_timing
from lbq_hw.external.split import Room

__all__ = [
    "TANG_NANO_20K",
    "ULX3S",
    "LayerPlan",
    "Plan",
    "PlanError",
    "ReaderTiming",
    "Room",
    "default_timing",
    "plan",
]
