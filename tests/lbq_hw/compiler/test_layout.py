"""Outputs in place of their shortcut's source."""

from __future__ import annotations

from lbq_hw import file, zoo
from lbq_hw.compiler import smallest_for
from lbq_hw.compiler.layout import lay_out, overwritten, place_over, shapes
from lbq_hw.compiler.patches import rewrite
from lbq_hw.config import CoreConfig
from lbq_hw.network import Network
from lbq_hw.sim.drawn.cores import external_core
from lbq_hw.sim.drawn.networks import random_network


def replaced(network: Network, config: CoreConfig) -> dict[str, str]:
    return overwritten(network, shapes(network, config), config)


def test_two_tensors_of_its_first_stage_are_enough_for_resnet20() -> None:
    network = file.load(zoo.find("cifar10-resnet20"))
    config = smallest_for(network, lanes=128)
    gathered = rewrite(network, config)[0].network
    over = replaced(gathered, config)
    tensors = place_over(shapes(gathered, config), over, config.summary)
    assert max(tensor.end for tensor in tensors.values()) == 2 * 6144
    assert tensors["blocks.0.neuron2"].base == tensors["stem.neuron"].base
    assert tensors["blocks.0.neuron1"].base != tensors["stem.neuron"].base
    # The first block of a stage has no identity, so its output finds a place of its own.
    assert "blocks.3.neuron2" not in over


def test_a_word_that_pixels_or_tiles_share_is_not_overwritten() -> None:
    network = file.load(zoo.find("cifar10-resnet20"))
    config = smallest_for(network, lanes=64, word=128)
    assert replaced(network, config) == {}
    assert replaced(network, smallest_for(network, lanes=64, word=64)) != {}


def test_with_external_memory_the_input_is_gathered_unless_only_then_it_does_not_fit() -> None:
    network = file.load(zoo.find("digits"))
    config = external_core(network, 0, lanes=16, summary=1)
    gathered, plain = (lay_out((form,), config) for form in rewrite(network, config))
    assert gathered.patches is not None
    assert (plain.network, plain.patches) == (network, None)
    assert plain.end < gathered.end
    for words, wanted in ((gathered.end, gathered), (gathered.end - 1, plain), (1, plain)):
        core = config.with_(plane_words=words, row_words=gathered.row_words)
        assert lay_out(rewrite(network, core), core).tensors == wanted.tensors


def test_the_input_is_not_gathered_if_only_then_its_rows_are_too_long() -> None:
    network = random_network(0)
    config = external_core(network, 0, lanes=16, summary=1)
    gathered, plain = (lay_out((form,), config) for form in rewrite(network, config))
    assert (gathered.row_words, plain.row_words) == (5, 3)
    for words, wanted in ((5, gathered), (4, plain), (3, plain), (2, gathered)):
        core = config.with_(plane_words=gathered.end, row_words=words)
        assert lay_out(rewrite(network, core), core).tensors == wanted.tensors
