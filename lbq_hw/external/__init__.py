"""Networks whose weights lie in external memory: how layers are cut into passes, and the cost.

`demand` is what layers ask for, `split` cuts them, `placing` finds places for what a pass needs,
`chips` are the memories, `reader` and `schedule` say when words arrive and passes run, `planner`
chooses. `lbq_hw.compiler` makes the tape from the plan. docs/external-memory.md has the design;
``python -m lbq_hw.external --help`` prints the budget of a network.
"""

from lbq_hw.external.planner import LayerPlan, Plan, PlanError, plan
from lbq_hw.external.reader import ReaderTiming, default_timing, reader_timing
from lbq_hw.external.split import Room

__all__ = [
    "LayerPlan",
    "Plan",
    "PlanError",
    "ReaderTiming",
    "Room",
    "default_timing",
    "plan",
    "reader_timing",
]
