"""Cycles of every layer from the program and the activity, equal to the RTL's counters, exactly.

`work` finds what each step asks for: requests, plane words with a flag, events. `stages` and
`model` find when each of these passes each stage of the core, with every queue as deep as it is.
`program` puts layers together, or passes and the tape that they wait for. `most` bounds them
without an image. ``lbq plan`` prints a table.
"""

from lbq_hw.cycles.means import means
from lbq_hw.cycles.model import BOUNDS, LayerCycles
from lbq_hw.cycles.most import most_cycles
from lbq_hw.cycles.program import predict

__all__ = ["BOUNDS", "LayerCycles", "means", "most_cycles", "predict"]
