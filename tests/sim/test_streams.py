"""Recordings on a streaming core: every step is compared, and the first difference is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulators import needs_verilator

from lbq_hw import file
from lbq_hw.golden.streaming import Stream
from lbq_hw.host.streaming import StreamDevice
from lbq_hw.sim import streams
from lbq_hw.sim.drawn.streams import compiled, recording, stream_network
from lbq_hw.streaming.cycles import step_cycles
from lbq_hw.streaming.machine import Machine

STEPS, WRONG = 6, 4
NETWORK = stream_network(3)
PROGRAM = compiled(NETWORK, lanes=4, units=2)
FRAMES = recording(NETWORK, STEPS)


class Modelled(StreamDevice):
    """A core that is golden and the cycle model, but for one step in which a part of it is not."""

    def __init__(self, wrong: str) -> None:
        self.program, self.config, self._wrong = PROGRAM, PROGRAM.config, wrong
        self._stream, self._machine = Stream(NETWORK), Machine(PROGRAM)
        self.steps = -1

    def step(self, frame: Any) -> Any:
        self.steps += 1
        self._now = self._stream.step(frame)
        work = self._machine.step(PROGRAM.events(frame))
        self._cycles = sum(step_cycles(PROGRAM.config, work))
        return self._now.logits + self._is("logits")

    def levels(self, name: str) -> Any:
        return self._now.levels[name] ^ self._is(name)

    def cycles(self) -> int:
        return self._cycles + self._is("cycles")

    def _is(self, part: str) -> bool:
        return self.steps == WRONG and self._wrong == part


def told(wrong: str) -> streams.Followed:
    return streams.follow(NETWORK, Modelled(wrong), FRAMES)


def test_a_core_that_is_golden_has_no_difference() -> None:
    found = told("nothing")
    assert found.difference is None
    assert len(found.cycles) == STEPS


@pytest.mark.parametrize("name", [layer.name for layer in NETWORK.layers[:-1]])
def test_levels_that_differ_are_told_with_step_and_layer(name: str) -> None:
    found = told(name)
    assert found.difference == f"step {WRONG}, layer {name!r}"
    assert len(found.cycles) == WRONG + 1


def test_logits_and_cycles_that_differ_are_told() -> None:
    assert told("logits").difference == f"step {WRONG}, layer {NETWORK.layers[-1].name!r}"
    found = told("cycles")
    assert found.difference == (
        f"step {WRONG}: cycles {found.cycles[-1] - 1} predicted, {found.cycles[-1]} counted"
    )


@needs_verilator
def test_the_command_runs_recordings_one_by_one_and_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, raw = tmp_path / "net.lbq", tmp_path / "frames.npy"
    file.save(NETWORK, model)
    steps = 2 * NETWORK.timesteps
    np.save(raw, recording(NETWORK, steps).reshape(2, NETWORK.timesteps, *NETWORK.input.shape))
    words = ["--model", str(model), "--raw", str(raw), "--images", "2", "--lanes", "4"]
    words += ["--units", "2", "--horizon", "64", "--json"]
    for more, count in ([], 2), (["--joined"], 1):
        assert streams.main([*words, *more]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["difference"] is None
        assert (facts["recordings"], facts["steps"]) == (count, steps)
        assert facts["cycles_per_recording"] >= facts["slowest_step"] > 0
