"""Cycles of every layer, computed from the program and the activity; equal to the RTL's counters.

`work` finds the requests, the plane words with a flag and the events of each step. `stages` and
`model` find when each of these passes each stage of the core, with the real depth of every queue.
`program` adds up layers, or passes and their waits for the tape. `most` is an upper bound without
an image. ``lbq plan`` prints a table.
"""

from lbq_hw.cycles.means import means
from lbq_hw.cycles.model import BOUNDS, LayerCycles
from lbq_hw.cycles.most import most_cycles
from lbq_hw.cycles.program import predict

__all__ = ["BOUNDS", "LayerCycles", "means", "most_cycles", "predict"]
