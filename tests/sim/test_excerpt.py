"""Parts of a network behave as they do inside it."""

import re

import numpy as np
import pytest

from lbq_hw import datasets, file, golden, zoo
from sim.excerpt import excerpt


@pytest.fixture(scope="module")
def network():
    return file.load(zoo.find("digits"))


@pytest.fixture(scope="module")
def images():
    return datasets.load("digits", split="test").images[:4]


def test_levels_of_a_part_are_those_of_the_whole(network, images):
    whole = golden.run(network, images, keep="levels").traces
    names = [layer.name for layer in network.layers[1:-1]]
    part, raw = excerpt(network, names[0], names[-1], images)
    found = golden.run(part, raw, keep="levels")
    for name in names:
        assert np.array_equal(found.traces[name].output, whole[name].output), name
    total = whole[names[-1]].output.astype(np.int64).sum(axis=(0, 2, 3, 4))
    assert np.array_equal(found.logits[:, 0], total)


def test_an_unknown_layer_is_named(network, images):
    names = ", ".join(layer.name for layer in network.layers)
    text = f"^'{network.name}' has no layer 'nowhere', only {re.escape(names)}$"
    with pytest.raises(ValueError, match=text):
        excerpt(network, "nowhere", network.layers[1].name, images)


def test_a_part_that_reads_pixels_is_refused(network, images):
    first = network.layers[0].name
    with pytest.raises(ValueError, match="must read one layer's levels, not \\['input'\\]"):
        excerpt(network, first, first, images)
