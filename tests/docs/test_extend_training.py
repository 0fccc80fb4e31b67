"""docs/extend-training.md names files and tables that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lbq_hw.datasets import DatasetInfo
from lbq_hw.train import models, neurons
from lbq_hw.train.settings.config import ModelConfig, NeuronConfig
from lbq_hw.train.settings.recipe import Recipe
from tools.results.store import METHODS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extend-training.md").read_text("utf-8")
NAMED = {
    "KINDS": neurons.KINDS,
    "MODELS": models.MODELS,
    "METHODS": METHODS,
    "DatasetInfo": DatasetInfo,
    "ModelConfig": ModelConfig,
    "NeuronConfig": NeuronConfig,
    "Recipe": Recipe,
}


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:train|lbq_hw|tests|tools)(?:/[\w./-]+)?)`", PAGE)))
)
def test_a_place_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_table_that_is_named_is_known_here() -> None:
    assert {name for name in NAMED if f"`{name}`" in PAGE} == NAMED.keys()


def test_every_room_of_the_training_half_is_on_the_page() -> None:
    rooms = {path.parent.name for path in (ROOT / "train").glob("*/__init__.py")}
    assert {room for room in rooms if f"`train/{room}`" not in PAGE} == set()
