# amaranth: UnusedElaboratable=no
"""Networks from a tape in the whole core: equal to golden, in the cycles of `lbq_hw.cycles`."""

from __future__ import annotations

import numpy as np
import pytest
from core.external.whole_core import Bench
from networks import random_images
from tapes import drawn

from lbq_hw import cycles, golden
from lbq_hw.compiler import Program, compile_network
from lbq_hw.external.reader import ReaderTiming
from lbq_hw.network import Network

LIMIT = 60_000


def small_tape(seed: int) -> tuple[Network, Program, ReaderTiming]:
    """A random network with more than one pass per layer, and a memory."""
    network, config = drawn(seed)
    timing = ReaderTiming(
        word_bits=config.external, page_words=64, first=5, rest=1, refresh=6, interval=150
    )
    return network, compile_network(network, config, timing=timing), timing


@pytest.mark.parametrize("seed", range(6))
def test_a_network_on_a_tape_is_exact_in_its_logits_and_cycles(seed: int) -> None:
    network, program, timing = small_tape(seed)
    images = random_images(network, 1, seed)
    wanted = golden.run(network, images, keep="levels")
    levels = {
        layer.name: np.asarray(wanted.traces[layer.name].output)[:, 0]
        for layer in network.layers[:-1]
    }
    predicted = cycles.predict(program, images[0], levels, timing=timing)
    bench = Bench(program, timing, limit=LIMIT)
    # Twice: nothing of a run is left for the next.
    for outcome in bench.run(images[0], [program.tape] * 2):
        assert (outcome.status, outcome.error) == (2, 0)
        assert np.array_equal(outcome.logits, wanted.logits[0])
        assert outcome.cycles == sum(layer.cycles for layer in predicted)
