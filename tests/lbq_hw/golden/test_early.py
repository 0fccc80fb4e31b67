"""Early answers: logits after each timestep, margins, and when a run stops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbq_hw import golden
from lbq_hw.golden import early
from lbq_hw.sim.drawn.networks import random_images, random_network

LOGITS = np.array(
    [
        [[1, 0, 0], [0, 2, 1], [3, 3, 0]],
        [[4, 1, 0], [0, 3, 3], [5, 3, 0]],
        [[2, 9, 0], [0, 3, 9], [9, 3, 0]],
    ]
)  # after each of 3 timesteps, of 3 inputs and 3 classes
LABELS = np.array([1, 2, 0])


@pytest.mark.parametrize("seed", range(6))
def test_logits_after_a_timestep_are_those_of_a_network_that_ends_there(seed: int) -> None:
    network = random_network(seed, static=bool(seed % 2), timesteps=5)
    raw = random_images(network, 3, seed)
    found = early.logits_by_step(network, raw, batch=2)
    for t in range(5):
        shorter = replace(network, timesteps=t + 1)
        frames = raw if network.input.static else raw[:, : t + 1]
        assert np.array_equal(found[t], golden.run(shorter, frames).logits)


def test_accuracy_is_known_after_each_timestep() -> None:
    assert early.accuracy_by_step(LOGITS, LABELS) == pytest.approx([100 / 3, 100 / 3, 100])


def test_an_input_stops_where_its_leader_is_ahead_by_the_margin_or_at_the_end() -> None:
    assert early.leads(LOGITS).tolist() == [[1, 1, 0], [3, 0, 2], [7, 6, 6]]
    found = early.stop(LOGITS, LABELS, 3)  # after 2, 3 and 3 timesteps, the first one too early
    assert (found.margin, found.images, found.most_steps) == (3, 3, 3)
    assert found.mean_steps == pytest.approx(8 / 3)
    assert found.accuracy == pytest.approx(200 / 3)
    assert early.stop(LOGITS, LABELS, 0).mean_steps == 1
    assert early.stop(LOGITS, LABELS, 99).mean_steps == 3


def test_the_margin_that_is_chosen_loses_no_answer_and_saves_timesteps() -> None:
    found = early.choose(LOGITS, LABELS)
    assert (found.accuracy, found.margin) == (100, 6)
    settled = np.stack([LOGITS[2], 2 * LOGITS[2], 3 * LOGITS[2]])
    found = early.choose(settled, LABELS)
    assert (found.accuracy, found.mean_steps) == (100, 1)


def test_one_class_cannot_lead() -> None:
    text = "a network must have at least 2 classes for one of them to lead"
    with pytest.raises(ValueError, match=f"^{text}$"):
        early.leads(np.zeros((2, 3, 1), np.int64))
