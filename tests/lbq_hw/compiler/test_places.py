"""Outputs in place of their shortcut's source."""

from __future__ import annotations

from lbq_hw import file, zoo
from lbq_hw.compiler import patches, smallest_for
from lbq_hw.compiler.places import overwritten, place_over


def test_two_tensors_of_its_first_stage_are_enough_for_resnet20() -> None:
    network = file.load(zoo.find("cifar10-resnet20"))
    config = smallest_for(network, lanes=128)
    gathered, _ = patches.rewrite(network, config)
    tensors = place_over(gathered, config)
    assert max(tensor.end for tensor in tensors.values()) == 2 * 6144
    assert tensors["blocks.0.neuron2"].base == tensors["stem.neuron"].base
    assert tensors["blocks.0.neuron1"].base != tensors["stem.neuron"].base
    # The first block of a stage has no identity, so its output finds a place of its own.
    assert "blocks.3.neuron2" not in overwritten(gathered, config)


def test_a_word_that_pixels_or_tiles_share_is_not_overwritten() -> None:
    network = file.load(zoo.find("cifar10-resnet20"))
    config = smallest_for(network, lanes=64, word=128)
    assert overwritten(network, config) == {}
    assert overwritten(network, smallest_for(network, lanes=64, word=64)) != {}
