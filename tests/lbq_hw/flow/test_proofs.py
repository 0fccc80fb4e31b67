"""The step that proves a bitstream: what it says of what the simulation found."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lbq_hw import bitstream, boards, flow, zoo
from lbq_hw.bitstream import Files, MissingError
from lbq_hw.flow import FlowError, Job, Options, proofs

RUN = {"simulator": "Verilator, seed 1", "images": 5, "equal": True, "difference": None}
SECOND = RUN | {"simulator": "Verilator, seed 2", "images": 1}


def prove(
    facts: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch, *, code: int = 0
) -> tuple[str, dict[str, Any]]:
    """The note and the product of the step, for what the simulation prints."""

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, code, json.dumps(facts), "")

    monkeypatch.setattr(proofs.subprocess, "run", run)
    monkeypatch.setattr(proofs, "locate", lambda _: object())
    job = Job(Options(model=zoo.find("digits"), images=5), boards.find("icebreaker"), folder)
    note = proofs.prove_bitstream(job, folder)
    return note, json.loads((folder / "prove.json").read_text(encoding="utf-8"))


def test_equal_logits_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    four = {"simulator": "Icarus, four states", "images": 1, "equal": True}
    facts = {"equal": True, "images": 5, "runs": [RUN, SECOND, four]}
    note, product = prove(facts, tmp_path, monkeypatch)
    states = "from 2 states of what begins unknown"
    assert note == f"the bitstream gave equal logits on 5 images, {states}, and in four states"
    assert product == facts
    four = {"simulator": "Icarus, four states", "images": 1, "skipped": "it is long"}
    note, _ = prove(facts | {"runs": [RUN, SECOND, four]}, tmp_path, monkeypatch)
    assert note.endswith(f", {states}, and not in four states, because it is long")


def test_a_difference_names_the_seed_and_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [RUN, SECOND | {"equal": False, "difference": "image 0"}]
    facts = {"equal": False, "images": 5, "runs": runs}
    with pytest.raises(FlowError) as caught:
        prove(facts, tmp_path, monkeypatch, code=1)
    assert str(caught.value) == (
        "the bitstream differs from the golden model (Verilator, seed 2): image 0"
    )


def test_a_missing_tool_skips_the_step_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"skipped": "icebox is missing: sudo apt install fpga-icestorm"}
    note, product = prove(facts, tmp_path, monkeypatch)
    assert note == "skipped, for icebox is missing: sudo apt install fpga-icestorm"
    assert product == facts


def test_a_netlist_without_icebox_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    nothing = tmp_path / "nothing"
    files = Files(constraints=nothing, netlist=nothing, placed=nothing, packed=nothing)
    with pytest.raises(MissingError) as caught:
        bitstream.netlist(files, boards.find("icebreaker"), tmp_path)
    assert str(caught.value) == "icebox is missing: sudo apt install fpga-icestorm"


def test_a_proof_comes_before_the_report() -> None:
    assert [step.name for step in flow.with_proof(flow.STEPS, "bitstream")[-3:]] == [
        "package",
        "prove",
        "report",
    ]
    assert flow.with_proof(flow.STEPS, None) == flow.STEPS
