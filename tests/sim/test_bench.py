"""The network that the benchmark of the core draws."""

import numpy as np

from lbq_hw import golden
from lbq_hw.sim.bench import ACTIVE, random_layer


def test_the_random_layer_is_a_network_with_the_activity_that_was_asked_for() -> None:
    network, frames = random_layer(active=ACTIVE, levels=5)
    assert network.input.shape == frames.shape[-3:]
    assert abs(np.mean(frames > 0) - ACTIVE) < 0.1 * ACTIVE
    assert set(np.unique(frames)) == set(range(6))
    assert golden.run(network, frames[:1]).logits.any()
