"""A difference is shown by the smallest network that was found, and written as a test.

The core that differs is golden itself, on a network that is changed: no simulation is built.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.lib import wiring

from lbq_hw import golden
from lbq_hw.config import CoreConfig
from lbq_hw.golden.streaming import Stream
from lbq_hw.network import Layer
from lbq_hw.sim.drawn.networks import random_images, random_network
from lbq_hw.sim.drawn.streams import recording, stream_network
from lbq_hw.sim.sweep import cases
from lbq_hw.sim.sweep.cases import Case
from lbq_hw.sim.sweep.smaller import size, smallest
from lbq_hw.sim.sweep.stands import OnChip, Stand, Trial, Verdict


def broken(layer: Layer) -> Layer:
    """Floors are forgotten."""
    if layer.neuron is None:
        return layer
    return replace(layer, neuron=replace(layer.neuron, floor=None))


@dataclass(frozen=True, kw_only=True)
class Forgetful(Stand):
    """A core that forgets floors, and that differs only after as many networks as `after`."""

    kind = "forgetful"
    after: int = 0

    def design(self) -> wiring.Component:
        raise AssertionError("it is never built")

    def facts(self) -> dict[str, Any]:
        return {}

    @contextmanager
    def start(self, _program: Path):
        yield []

    def compare(self, core: Any, trial: Trial) -> Verdict:
        core.append(trial)
        network = trial.network
        other = replace(network, layers=tuple(map(broken, network.layers)))
        if not network.input.static and trial.inputs.ndim == 4:
            streams = Stream(network), Stream(other)
            steps = [[s.step(frame).logits for s in streams] for frame in trial.inputs]
            same = all(np.array_equal(*pair) for pair in steps)
        else:
            same = np.array_equal(*(golden.run(n, trial.inputs).logits for n in (network, other)))
        differs = not same and len(core) > self.after
        return Verdict(difference="floors" if differs else None, cycles=1)


def drawn(*, streaming: bool) -> Trial:
    """The first random network of several layers that differs."""
    for seed in range(200):
        network = stream_network(seed) if streaming else random_network(seed)
        inputs = recording(network, 12) if streaming else random_images(network, 2, seed)
        trial = Trial(network=network, inputs=inputs)
        if len(network.layers) > 3 and Forgetful().compare([], trial).difference:
            return trial
    raise AssertionError("no network has a floor that counts")


@pytest.mark.parametrize("streaming", [False, True])
def test_a_network_of_many_layers_becomes_one_of_two(streaming: bool) -> None:
    trial = drawn(streaming=streaming)
    found = smallest(Case(stand=Forgetful(), trials=(trial, trial)), Path())
    assert found.difference(Path()) == "floors"
    (small,) = found.trials
    assert [layer.neuron is None for layer in small.network.layers] == [False, True]
    assert small.network.layers[0].neuron.floor is not None
    assert size(small) < size(trial)
    assert max(np.count_nonzero(p.weight) for p in small.network.layers[0].paths) <= 4


def test_a_network_that_is_needed_before_it_is_kept() -> None:
    trial = drawn(streaming=False)
    whole = Case(stand=Forgetful(after=1), trials=(trial, trial, trial))
    found = smallest(whole, Path())
    assert len(found.trials) == 2
    assert found.trials[0] is trial
    assert size(found.trials[1]) < size(trial)


def test_a_difference_that_does_not_show_again_is_kept_as_it_was() -> None:
    whole = Case(stand=Forgetful(after=9), trials=(drawn(streaming=False),))
    assert smallest(whole, Path()) is whole


def test_a_case_is_read_as_it_was_written(tmp_path: Path) -> None:
    trial = drawn(streaming=False)
    written = Case(stand=OnChip(config=CoreConfig()), trials=(trial, trial))
    written.write(tmp_path / "case", 'Layer "a\\"')
    found = cases.read(tmp_path / "case")
    assert found.stand == written.stand
    assert len(found.trials) == 2
    assert np.array_equal(found.trials[1].inputs, trial.inputs)
    wanted = golden.run(trial.network, trial.inputs).logits
    assert np.array_equal(golden.run(found.trials[0].network, trial.inputs).logits, wanted)
    text = (tmp_path / "case" / "test_case.py").read_text("utf-8")
    compile(text, "test_case.py", "exec")
