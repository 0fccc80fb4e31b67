"""A simulated board with a streaming core, its UART included, through ``lbq host --stream``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lbq_hw import file
from lbq_hw.sim import board
from lbq_hw.sim.drawn.streams import recording, stream_network
from lbq_hw.streaming import package
from lbq_hw.streaming.compiler import compile_stream


@pytest.mark.slow
def test_a_recording_through_the_line_equals_golden_at_every_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, model = stream_network(3), tmp_path / "model.lbq"
    file.save(network, model)
    config = compile_stream(network, lanes=4, units=2, horizon=64).config
    folder, frames = tmp_path / "package", tmp_path / "frames.npy"
    line = {"board": "sim", "clock_hz": 12_000_000, "baud": 1_000_000, "horizon": 64}
    package.write(folder, **line, config=config, model=model)
    np.save(frames, recording(network, 4, 3))
    words = ["--stream", str(frames), "--compare", "--json"]
    assert board.main(["--package", str(folder), "--host", *words]) == 0
    (found,) = json.loads(capsys.readouterr().out)["recordings"]
    assert (found["steps"], found["equal"]) == (4, True)
