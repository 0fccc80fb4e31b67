"""Estimates of a core before synthesis: logic, memory blocks and the fastest clock.

Logic and clock come from a fitted model, memories are counted. Everything here is an estimate:
``python -m lbq_hw.resources`` prints it beside the measurements.
"""

from lbq_hw.resources.door import of_door
from lbq_hw.resources.measured import add, measured, met
from lbq_hw.resources.memories import Memory, blocks, sprams
from lbq_hw.resources.model import Estimate, compare, estimate, fastest_hz, least
from lbq_hw.resources.room import hopeless, lack, roomy, rounded, short

__all__ = [
    "Estimate",
    "Memory",
    "add",
    "blocks",
    "compare",
    "estimate",
    "fastest_hz",
    "hopeless",
    "lack",
    "least",
    "measured",
    "met",
    "of_door",
    "roomy",
    "rounded",
    "short",
    "sprams",
]
