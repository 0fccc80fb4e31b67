"""Networks of other frameworks, taken up as they were trained: sinabs, snnTorch, SpikingJelly and
Brevitas.

    model = adopt(net, timesteps=25, static=True)      # in this project's layers, equal spikes
    network = train.export.integer_network(model, spec)

No framework is imported here: neurons and layers are known by their classes, and read by their
attributes. `rules` has what they share; what has no exact form is refused in one error with
every place, reason and mend.
"""

from __future__ import annotations

from lbq_hw.train.frameworks.adopt import adopt

__all__ = ["adopt"]
