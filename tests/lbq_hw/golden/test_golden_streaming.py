"""Golden step by step against golden on whole recordings."""

from __future__ import annotations

import numpy as np
import pytest

from lbq_hw import golden
from lbq_hw.golden.streaming import Stream
from lbq_hw.sim.drawn.networks import random_images, random_network


@pytest.mark.parametrize("seed", range(12))
def test_steps_are_those_of_a_run(seed: int) -> None:
    network = random_network(seed, static=False, timesteps=5)
    raw = random_images(network, 2, seed)
    whole = golden.run(network, raw, keep="levels")
    stream = Stream(network)
    for image, frames in enumerate(raw):
        stream.reset()
        emitted = whole.emitted(image)
        for t, frame in enumerate(frames):
            step = stream.step(frame)
            for name, levels in step.levels.items():
                assert np.array_equal(levels, emitted[name][t]), (name, t)
        assert step.logits.tolist() == whole.logits[image].tolist()
        assert stream.steps == 5


def test_a_static_input_has_no_steps() -> None:
    with pytest.raises(ValueError, match="has a static input: a stream needs one frame per step"):
        Stream(random_network(1, static=True))
