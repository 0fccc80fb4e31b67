"""The step of a build that simulates: a difference leaves its waves."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lbq_hw import boards, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.flow import FlowError, Job, Options, steps


@pytest.mark.parametrize("written", [True, False])
def test_a_difference_is_simulated_again_with_waves(
    written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(Options(model=zoo.find("digits"), images=1), boards.find("sim"), tmp_path)
    job.config = CoreConfig(lanes=8)
    calls: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        if "--waves" in command and written:
            Path(command[-1]).write_bytes(b"FST")
        facts = {"bit_exact": False, "difference": "image 0, layer 'a'"}
        return subprocess.CompletedProcess(command, 1, json.dumps(facts), "")

    monkeypatch.setattr(steps, "locate", lambda _: object())
    monkeypatch.setattr(steps, "finish", run)
    with pytest.raises(FlowError) as error:
        steps.simulate(job, tmp_path)
    waves = tmp_path / "logs" / "simulate.fst"
    kept = f"; its waves are {waves}" if written else ""
    assert str(error.value) == f"the RTL differs from the golden model: image 0, layer 'a'{kept}"
    assert calls[1] == [*calls[0], "--waves", str(waves)]
