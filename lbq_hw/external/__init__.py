"""Networks whose weights lie in external memory: how layers are cut into passes, and the cost.

`demand` finds what layers ask for, `split` cuts them, `reader` and `schedule` say when words arrive
and passes run, `planner` chooses. docs/external-memory.md has the design; ``python -m
lbq_hw.external --help`` prints the budget of a network.
"""

from lbq_hw.external.demand import demands
from lbq_hw.external.planner import LayerPlan, PlanError, plan
from lbq_hw.external.reader import TANG_NANO_20K, ULX3S, ReaderTiming
from lbq_hw.external.split import Room

__all__ = [
    "TANG_NANO_20K",
    "ULX3S",
    "LayerPlan",
    "PlanError",
    "ReaderTiming",
    "Room",
    "demands",
    "plan",
]
