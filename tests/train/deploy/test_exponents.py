"""Exponents of several paths: as good as trying them all, and in a time that does not explode."""

import itertools

import numpy as np
import pytest

from lbq_hw import numeric
from lbq_hw.network import limits
from lbq_hw.train.deploy import exponents
from lbq_hw.train.deploy.rounding import MAX_REFINEMENT
from lbq_hw.train.quantize import MAX_CHOSEN_EXPONENT


def tensors(seed: int, paths: int, channels: int = 4) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = 2.0 ** rng.uniform(-4, 4, (paths, 1, 1))
    spread = 2.0 ** rng.uniform(-1, 1, (paths, channels, 1))
    return list(sizes * spread * rng.standard_normal((paths, channels, 18)))


def least_error(weights: list[np.ndarray], chosen: tuple[int, ...], bits: int) -> float:
    """Squared error with the best of a fine row of scales in every channel."""
    limit, total = numeric.weight_limit(bits), 0.0
    for channel in range(len(weights[0])):
        rows = [w[channel] / 2.0**x for w, x in zip(weights, chosen, strict=True)]
        widest = max(np.abs(row).max() for row in rows) / limit
        errors = []
        for scale in widest * np.linspace(0.35, 1.2, 60):
            rounded = [np.clip(np.rint(row / scale), -limit, limit) * scale for row in rows]
            parts = zip(rounded, rows, chosen, strict=True)
            errors.append(sum(((a - b) ** 2).sum() * 4.0**x for a, b, x in parts))
        total += min(errors)
    return total


def test_a_chosen_exponent_that_is_refined_is_one_that_a_network_may_have():
    assert MAX_CHOSEN_EXPONENT + MAX_REFINEMENT <= limits.MAX_EXPONENT


@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("seed", range(4))
def test_two_paths_get_the_best_exponents_as_far_as_a_grid_of_scales_tells(bits, seed):
    weights = tensors(seed, 2)
    every = itertools.product(range(MAX_CHOSEN_EXPONENT + 1), repeat=2)
    best = min(least_error(weights, pair, bits) for pair in every if min(pair) == 0)
    found = exponents.best(weights, bits, finest=0.0, shared=False)
    assert least_error(weights, found, bits) <= 2 ** (1 / 4) * best  # a step more is 2**(1/8)


@pytest.mark.parametrize("shared", [False, True])
def test_the_search_over_many_paths_ends_where_trying_all_would(monkeypatch, shared):
    for seed in range(5):
        weights = tensors(seed, 3)
        tried = exponents.best(weights, 4, finest=0.0, shared=shared)
        monkeypatch.setattr(exponents, "_TRY_ALL", 0)
        assert exponents.best(weights, 4, finest=0.0, shared=shared) == tried
        monkeypatch.undo()


def test_the_errors_that_are_tabled_grow_with_the_paths_and_not_as_their_power(monkeypatch):
    asked = []
    compute = exponents._Search.error

    def error(self, chosen):
        asked.append(chosen)
        return compute(self, chosen)

    monkeypatch.setattr(exponents._Search, "error", error)
    exponents.best(tensors(0, 12), 8, finest=0.0, shared=False)
    sweep = 12 * (MAX_CHOSEN_EXPONENT + 2)
    assert len(asked) <= 6 * sweep


def test_a_path_of_zeros_and_one_of_tiny_weights_do_no_harm():
    small, large, zero = *tensors(1, 2), np.zeros((4, 9))
    large, tiny = large + 1, small * 1e-30
    found = exponents.best([large, zero, tiny], 8, finest=0.0, shared=False)
    assert found[0] - min(found) <= MAX_CHOSEN_EXPONENT
    assert min(found) == 0


def test_the_scale_is_not_finer_than_asked():
    """A path far below the finest scale is lost whatever its exponent, so the other decides."""
    weights = tensors(3, 2)
    weights[0] *= 1e-9
    alone = exponents.best(weights, 8, finest=float(np.abs(weights[1]).max()) / 4, shared=False)
    assert alone == (0, 0)
