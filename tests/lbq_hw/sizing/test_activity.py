"""How busy a network is: counted on images, known from an evaluation, or assumed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from lbq_hw import datasets, zoo
from lbq_hw.file import load
from lbq_hw.network import Layer, Path, Window
from lbq_hw.sizing.activity import ASSUMED, activity

SMALL = [name for name in zoo.names() if name != "cifar10-resnet20"]


def evaluation(name: str) -> dict:
    return json.loads(zoo.evaluation(name).read_text(encoding="utf-8"))


def test_images_are_counted() -> None:
    network = load(zoo.find("digits"))
    blank = np.zeros((1, *network.input.shape), np.uint8)
    found = activity(network, images=blank, evaluation=evaluation("digits"))
    assert found.source == "images"
    assert found.accumulations[0] == 0
    assert found.remark == ""


def test_a_readout_that_counts_spikes_accumulates_nothing() -> None:
    network = load(zoo.find("digits"))
    *spiking, last = network.layers[:-1]
    flat = Window(kernel=last.output_shape[1:], stride=(1, 1))
    path = Path(source=last.name, weight=np.ones(last.shape[0], np.int64), pool=flat)
    count = Layer(
        name="count",
        shape=(last.shape[0], 1, 1),
        paths=(path,),
        bias=np.zeros(last.shape[0], np.int64),
        fraction_bits=0,
        neuron=None,
    )
    counting = replace(network, layers=(*spiking, last, count))
    found = activity(counting, images=datasets.load("digits", split="test").images[:2])
    assert found.shares[-1] == 0.0
    assert all(share > 0 for share in found.shares[:-1])


def test_an_evaluation_tells_what_its_images_would() -> None:
    network, known = load(zoo.find("digits")), evaluation("digits")
    images = datasets.load("digits", split="test").images
    assert len(images) == known["images"]
    found = activity(network, evaluation=known)
    counted = activity(network, images=images)
    assert found.accumulations == counted.accumulations
    assert found.source == "evaluation"
    assert found.remark == "with the activity of the zoo's evaluation"


def test_an_evaluation_of_another_network_tells_nothing() -> None:
    found = activity(load(zoo.find("digits")), evaluation=evaluation("mnist"))
    assert found.source == "assumed"
    assert found.remark == "if 11 % of the bits are set: --raw FILE or --data DIR counts them"


@pytest.mark.parametrize("name", [name for name in SMALL if name != "fsdd"])
def test_what_is_assumed_is_no_less_than_what_any_network_for_a_camera_has(name: str) -> None:
    network = load(zoo.find(name))
    known, assumed = activity(network, evaluation=evaluation(name)), activity(network)
    assert assumed.share == ASSUMED
    assert known.share < assumed.share
    assert sum(known.accumulations) < sum(assumed.accumulations)
