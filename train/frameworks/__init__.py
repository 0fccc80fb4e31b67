"""Imports trained networks of other frameworks: sinabs, snnTorch, SpikingJelly and Brevitas.

    model = adopt(net, timesteps=25, static=True)      # in this project's layers, equal spikes
    network = train.export.integer_network(model, spec)

No framework is imported here: neurons and layers are recognized by their class names and read from
their attributes. `rules` has the common functions. What has no exact form is refused in one error
with every place, reason and remedy.
"""

from __future__ import annotations

from lbq_hw.train.frameworks.adopt import adopt

__all__ = ["adopt"]
