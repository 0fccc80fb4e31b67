"""Hosts that die and boards that lose their power: later results are right."""

from __future__ import annotations

import pytest
from simulators import CACHE, needs_verilator

from lbq_hw.package import Package
from lbq_hw.sim import noise, outages, small_boards
from lbq_hw.sim.drawn.networks import random_network


@pytest.fixture(
    scope="module",
    params=[pytest.param(False, marks=pytest.mark.slow), True],
    ids=["no queue", "queue"],
)
def packed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Package:
    """As in test_noise.py, whose simulations are built already."""
    network = random_network(33, static=True)
    return small_boards.on_chip(network, tmp_path_factory.mktemp("outages"), queue=request.param)


@needs_verilator
def test_results_after_outages_are_right(packed: Package) -> None:
    found = outages.run(packed, times=12, seed=1, cache=CACHE)
    assert found.deaths > 2
    assert found.power_cycles > 2
    assert (found.wrong, found.lost) == (0, 0)
    assert found.answers >= 13 * noise.BATCH
    assert outages.spoken(found).startswith(f"{found.deaths} hosts died and the board lost its")


@needs_verilator
def test_wrong_results_are_found(packed: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "noise", lambda *_: noise.noise(packed.network, noise.BATCH)[::-1])
    right = outages.golden.run(packed.network, noise.noise(packed.network, noise.BATCH))
    monkeypatch.setattr(outages.golden, "run", lambda *_: right)
    found = outages.run(packed, times=1, seed=1, cache=CACHE)
    assert found.wrong > 0
    assert not found.good
