"""What layers ask for equals what the program of a core that holds everything does."""

from __future__ import annotations

import pytest

from lbq_hw import file, interpreter, zoo
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.compiler.draft import draft
from lbq_hw.compiler.passes.blocks import demands
from lbq_hw.compiler.passes.placing import side_by_side
from lbq_hw.network import INPUT
from lbq_hw.sim.drawn.networks import random_images, random_network


@pytest.mark.parametrize("seed", range(30))
def test_events_and_steps_of_random_networks_are_those_of_the_interpreter(seed: int) -> None:
    network = random_network(seed)
    config = smallest_for(network, lanes=(4, 8, 16)[seed % 3])
    (raw,) = random_images(network, 1, seed)
    done = interpreter.run(compile_network(network, config), raw)
    levels = {INPUT: network.input.quantize(raw[None])[:, 0], **done.levels}
    found = demands(draft(network, config), config, levels, block_rows=8)
    assert [demand.events for demand in found] == [work.events for work in done.work]
    steps = [demand.tiles * int(demand.steps.sum()) for demand in found]
    assert steps == [work.steps for work in done.work]


def test_blocks_of_a_layer_have_all_its_weight_rows() -> None:
    network = random_network(3, channels=20)
    config = smallest_for(network, lanes=8)
    (raw,) = random_images(network, 1)
    done = interpreter.run(compile_network(network, config), raw)
    levels = {INPUT: network.input.quantize(raw[None])[:, 0], **done.levels}
    for layer, demand in zip(
        network.layers[1:],
        demands(draft(network, config), config, levels, block_rows=8)[1:],
        strict=True,
    ):
        convs = [path.weight[0].size for path in layer.paths if not path.is_identity]
        assert sum(block.rows for block in demand.blocks) == sum(convs)
        assert max((block.rows for block in demand.blocks), default=0) <= 8


def test_taps_of_few_channels_share_a_block() -> None:
    network = file.load(zoo.find("digits"))
    config = smallest_for(network, lanes=8, word=8, summary=8)
    first, second, *_ = demands(draft(network, config), config, None, block_rows=8)
    assert [block.rows for block in first.blocks] == [8, 1]  # 3 x 3 taps of one channel
    assert [len(block.pieces) for block in first.blocks] == [8, 1]
    assert {block.rows for block in second.blocks} == {8}  # 8 channels: one tap each
    assert side_by_side(first.blocks, 8) == 3
