"""Why faults are found by nothing: written by hand, for the line and the bit of each.

A fault that survives and is not here has no explanation yet.
"""

from __future__ import annotations

from lbq_hw.sim.mutants.faults import Fault

__all__ = ["reason"]

_SAME = "The same bit is exchanged where membranes are written and read: groups swap their places."
_WAITS = "In the cycle after a start only, the host's port waits a cycle longer; no result changes."
_REASONS = {
    ("lbq_hw/core/neurons/level_collector.py:44", "neurons.at[1].group[0]", "inv"): _SAME,
    ("lbq_hw/core/neurons/level_collector.py:44", "neurons.at[1].group[1]", "inv"): _SAME,
    ("lbq_hw/core/walk/walker.py:108", "o_done[0]", "const1"): _WAITS,
}
"""By the line of the source, the wire or else the cell's port, and what is done to the bit."""


def reason(fault: Fault) -> str | None:
    """Why nothing finds a fault, if somebody has found out."""
    bit = fault.wire or f"{fault.port}[{fault.bit}]"
    return _REASONS.get((fault.source, bit, fault.mode))
