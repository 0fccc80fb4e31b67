"""Frames damaged on the line of a simulated board: answers come late, never wrong."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
from simulators import CACHE, needs_verilator

from lbq_hw import golden
from lbq_hw.host import frames
from lbq_hw.package import Package
from lbq_hw.sim import noise, noise_line, small_boards
from lbq_hw.sim.drawn.networks import random_network


@pytest.fixture(
    scope="module",
    params=[pytest.param(False, marks=pytest.mark.slow), True],
    ids=["no queue", "queue"],
)
def packed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Package:
    network = random_network(33, static=True)
    logits = golden.run(network, noise.noise(network, noise.BATCH)).logits
    assert len(np.unique(logits, axis=0)) == noise.BATCH  # so that no answer stands for another
    return small_boards.on_chip(network, tmp_path_factory.mktemp("noise"), queue=request.param)


@needs_verilator
def test_no_answer_is_wrong_and_none_is_refused(packed: Package) -> None:
    found = noise.run(packed, frames=150, rate=0.1, seed=3, cache=CACHE)
    assert found.frames >= 150
    assert set(found.damaged) == set(noise_line.KINDS)
    assert (found.wrong, found.refused, found.hangs) == (0, 0, 0)
    assert found.answers > 100
    assert found.spoken().startswith(f"{found.frames} damaged frames (")


def believed(body: bytes) -> bytes | None:
    """A frame whatever its CRC says."""
    plain = re.sub(b"\x7d(.)", lambda found: bytes((found[1][0] ^ 0x20,)), body, flags=re.DOTALL)
    return plain[:-4] if plain[1:2] == b"\0" else None


@needs_verilator
def test_wrong_answers_are_found(packed: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "unwrap", believed)
    monkeypatch.setattr(noise_line, "KINDS", ("flipped",))
    assert noise.run(packed, frames=100, rate=0.1, seed=4, cache=CACHE).wrong > 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--frames", "0"), "argument --frames: must be at least 1, not 0"),
        (("--rate", "1"), "--rate must lie between 0 and 1, not 1"),
        (("--model", "nothing.lbq"), "nothing.lbq"),
        (("--link", "--queue"), "--link takes neither --model nor --queue"),
    ],
)
def test_bad_options(
    options: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        sys.exit(noise.main(options))
    assert sentence in capsys.readouterr().err


@needs_verilator
@pytest.mark.slow
def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert noise.main(["--frames", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["wrong"] == 0
