"""What a network's numbers mean, said by its file or by its dataset."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbq_hw import datasets, file, zoo
from lbq_hw.datasets import meaning
from lbq_hw.network import Network

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
DIGITS = tuple("0123456789")


@pytest.mark.parametrize(
    ("name", "full_scale", "class_names"),
    [
        ("digits", 16, DIGITS),
        ("mnist", 255, DIGITS),
        ("nmnist", None, DIGITS),
        ("cifar10-onchip", 255, CIFAR10),
    ],
)
def test_a_network_of_the_zoo_means_what_its_dataset_means(
    name: str, full_scale: int | None, class_names: tuple[str, ...]
) -> None:
    network = file.load(zoo.find(name))
    assert meaning.full_scale(network) == full_scale
    assert meaning.class_names(network) == class_names


def digits(**meta: str) -> Network:
    return replace(file.load(zoo.find("digits")), meta=meta)


def test_a_file_that_says_it_itself_is_believed() -> None:
    network = digits(dataset="digits")
    names = tuple("abcdefghij")
    network = replace(network, input=replace(network.input, full_scale=20), class_names=names)
    assert meaning.full_scale(network) == 20
    assert meaning.class_names(network) == names


@pytest.mark.parametrize("meta", [{}, {"dataset": "npz"}, {"dataset": "of my own"}])
def test_without_a_word_full_scale_is_what_the_bits_hold(meta: dict[str, str]) -> None:
    assert meaning.full_scale(digits(**meta)) == 31
    assert meaning.class_names(digits(**meta)) == ()


def test_every_official_dataset_names_its_classes() -> None:
    counts = {name: datasets.info(name).classes for name in datasets.names()[:-2]}
    assert counts == {
        "digits": 10,
        "mnist": 10,
        "fashion-mnist": 10,
        "cifar10": 10,
        "cifar100": 100,
        "nmnist": 10,
        "dvs128-gesture": 11,
        "cifar10-dvs": 10,
        "fsdd": 10,
    }
    assert datasets.info("cifar100").class_names[::33] == ("apple", "forest", "raccoon", "worm")
    assert datasets.info("cifar10-dvs").class_names == CIFAR10
