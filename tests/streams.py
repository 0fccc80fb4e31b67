"""A network whose readout grows without end."""

from __future__ import annotations

import numpy as np

from lbq_hw.network import INPUT, Input, Layer, Network, Path


def counting_network() -> Network:
    """One pixel, whose events are counted without end."""
    layer = Layer(
        name="logits",
        shape=(1, 1, 1),
        paths=(Path(source=INPUT, weight=np.ones((1, 1, 1, 1), np.int8)),),
        bias=np.zeros(1, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    source = Input(shape=(1, 1, 1), static=False, bits=1)
    return Network(name="counting", input=source, timesteps=4, weight_bits=2, layers=(layer,))
