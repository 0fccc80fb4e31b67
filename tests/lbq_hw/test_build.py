"""The command line of a build: what it prints, and the exit code of everything that goes wrong."""

from __future__ import annotations

import errno
import html
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from simulators import needs_verilator

from lbq_hw import boards, build, flow, package
from lbq_hw.flow import Job
from lbq_hw.report import store
from tests.lbq_hw.fake_tools import Fakes
from tests.lbq_hw.flow.test_flow import QUICK

ROOT = Path(__file__).parents[2]
COMMON = ["--board", "ulx3s-45f", "--model", "digits", "--lanes", "8", "--images", "1"]


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fakes:
    """Fake tools, and quick steps in place of slow ones."""
    folder = tmp_path / "tools"
    folder.mkdir()
    patch(monkeypatch, **QUICK)
    return Fakes(folder, monkeypatch)


def patch(monkeypatch: pytest.MonkeyPatch, **runs: object) -> None:
    steps = [replace(step, run=runs.get(step.name, step.run)) for step in flow.STEPS]
    monkeypatch.setattr(flow, "STEPS", tuple(steps))


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """The exit code, and the error's lines."""
    code = build.main(list(arguments))
    text = capsys.readouterr().err
    return code, re.split("^(?=error: |interrupted)", text, flags=re.M)[-1].splitlines()


def test_a_build_prints_one_object_and_leaves_a_package(
    tmp_path: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert build.main([*COMMON, "--build-dir", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["board"], facts["folder"], facts["error"]) == ("ulx3s-45f", str(folder), None)
    assert [step["step"] for step in facts["steps"]] == flow.names()
    assert package.read(folder / "package").network.name == "digits"
    assert fakes.calls() == ["yosys", "nextpnr-ecp5", "ecppack"]


def test_the_next_commands_are_printed_and_stand_in_the_report(
    tmp_path: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "with a blank"
    assert build.main([*COMMON, "--build-dir", str(folder)], prog="lbq build") == 0
    lines = capsys.readouterr().err.splitlines()
    packed = f"'{folder}/package'"
    assert lines[lines.index("next:") + 1 :] == [
        f"  openFPGALoader -b ulx3s '{folder}/package/ulx3s-45f.bit'",
        f"  lbq host --port auto --package {packed} --selftest",
    ]
    made = store.read(folder / "report").build
    assert made is not None
    assert made.next[1] == f"lbq host --port auto --package {packed} --selftest"
    assert made.baked
    page = html.unescape((folder / "report" / "report.html").read_text("utf-8"))
    assert f"lbq host --port auto --package {packed} --selftest</code>" in page
    found = package.read(folder / "package").selftest
    assert found is not None
    assert len(found.images) == 3
    assert fakes.calls() == ["yosys", "nextpnr-ecp5", "ecppack"]


@pytest.mark.slow
@needs_verilator
def test_the_next_command_of_a_simulated_board_runs_as_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "with a blank"
    arguments = ["--board", "sim", "--model", "digits", "--lanes", "4", "--images", "1"]
    assert build.main([*arguments, "--build-dir", str(folder)]) == 0
    *_, line = capsys.readouterr().err.splitlines()
    words = shlex.split(line)
    assert words[0] == "lbq"
    done = subprocess.run(
        [sys.executable, "-m", "lbq_hw", *words[1:]],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "all logits equal" in done.stdout


@pytest.mark.parametrize(
    ("board", "headings"),
    [("sim", ["estimate"]), ("ulx3s-85f", ["estimate", "ULX3S-85F"])],
)
def test_columns_that_know_nothing_are_not_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    board: str,
    headings: list[str],
) -> None:
    arguments = ["--board", board, "--model", "digits", "--lanes", "4", "--images", "1"]
    assert build.main([*arguments, "--until", "fit", "--build-dir", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().err.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.split()[:1] == ["estimate"]]
    assert lines[at].split() == headings


def test_the_boards_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["--list-boards", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [board["name"] for board in listed] == boards.names()
    assert build.main(["--list-boards"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in boards.names())


def test_a_dry_run_does_nothing(
    tmp_path: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert build.main([*COMMON, "--build-dir", str(folder), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"in {folder}:"
    assert [line.split()[0] for line in lines[1:]] == flow.names()
    assert not folder.exists()
    assert fakes.calls() == []


def test_a_model_that_is_no_network_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "net.lbq"
    model.write_bytes(b"no network at all")
    folder = tmp_path / "out"
    code, lines = failure(
        capsys, "--board", "sim", "--model", str(model), "--build-dir", str(folder)
    )
    assert (code, len(lines)) == (2, 1)
    assert str(model) in lines[0]
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "error: give --board and --model, or --list-boards"),
        (["--model", "digits"], 2, "error: give --board, or --list-boards"),
        (["--board", "sim"], 2, "error: give --model, or --list-boards"),
        (
            ["--board", "icebraker", "--model", "digits"],
            2,
            "error: no board 'icebraker': did you mean icebreaker",
        ),
        (
            ["--board", "sim", "--model", "digit"],
            2,
            "error: no model 'digit': give the path of an .lbq file or a name of the zoo "
            "(cifar10-onchip, cifar10-resnet20, cifar10-resnet20-4bit, "
            "cifar10-resnet20-4bit-sparse, cifar10-small, digits, digits-vgg, fsdd, mnist, "
            "mnist-4bit, nmnist, nmnist-stream); did you mean 'digits'?",
        ),
        (
            ["--board", "sim", "--model", "digits", "--lanes", "5"],
            2,
            "error: lanes must be a power of two up to 256, not 5",
        ),
        (
            ["--board", "sim", "--model", "digits", "--from", "synth"],
            1,
            "error: board 'sim' has no step 'synth'",
        ),
        (
            ["--board", "sim", "--model", "digits", "--from", "check", "--until", "load"],
            1,
            "error: step 'check' must not come after step 'load'",
        ),
        (
            ["--board", "ulx3s-85f", "--model", "digits", "--freq", "900", "--until", "fit"],
            2,
            "error: the clock must be one that the PLL makes of 25 MHz (3.125 to 400 MHz), "
            "not 900 MHz",
        ),
        (
            ["--board", "sim", "--model", "mnist", "--data", "/nowhere", "--until", "fit"],
            2,
            "error: there is no folder /nowhere; dataset 'mnist' needs",
        ),
    ],
)
def test_wrong_arguments_are_answered_in_one_line(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, lines = failure(capsys, *arguments, "--build-dir", str(tmp_path / "out"))
    assert (found, len(lines)) == (code, 1)
    assert lines[0].startswith(message)


def test_a_missing_tool_is_found_before_anything_runs(
    tmp_path: Path,
    fakes: Fakes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ECPPACK", "/nowhere/ecppack")
    code, lines = failure(capsys, *COMMON, "--build-dir", str(tmp_path / "out"))
    assert (code, lines) == (
        1,
        [
            "error: packing for ECP5 needs ecppack, but ECPPACK=/nowhere/ecppack is not a program: "
            "pip install 'lbq-hw[hw]'"
        ],
    )
    assert not (tmp_path / "out").exists()
    assert fakes.calls() == []


def test_a_tool_that_fails_is_no_trace(
    tmp_path: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.fail("yosys", "ERROR: syntax error")
    code, lines = failure(capsys, *COMMON, "--build-dir", str(tmp_path / "out"))
    assert code == 1
    assert lines[0].startswith("error: yosys failed (exit code 1); its log is ")
    assert lines[1:] == ["  ERROR: syntax error"]


def test_a_network_that_does_not_fit_is_refused_with_what_is_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--board", "icebreaker", "--model", "mnist", "--lanes", "64", "--until", "fit"]
    code, lines = failure(capsys, *arguments, "--build-dir", str(tmp_path))
    assert code == 1
    assert lines[0] == "error: network 'mnist' does not fit iCEBreaker with 64 lanes"
    assert any("block RAMs, iCEBreaker has 30" in line for line in lines[1:])
    assert any("LUTs, iCEBreaker has 5,280" in line for line in lines[1:])


def test_a_full_disk_ends_the_build_without_a_package(
    tmp_path: Path,
    fakes: Fakes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fill(_job: Job, work: Path) -> str:
        """Package on a full disk."""
        (work / "package").mkdir()
        raise OSError(errno.ENOSPC, "No space left on device", str(work))

    patch(monkeypatch, package=fill)
    folder = tmp_path / "out"
    code, lines = failure(capsys, *COMMON, "--build-dir", str(folder))
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith("error: the disk is full (")
    assert (folder / "top.bit").is_file()
    assert not (folder / "package").exists()
    assert fakes.calls()


def test_an_interrupt_ends_with_130_and_keeps_what_is_done(
    tmp_path: Path,
    fakes: Fakes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(_job: Job, _work: Path) -> str:
        """Pack until the user has enough."""
        raise KeyboardInterrupt

    patch(monkeypatch, pack=stop)
    folder = tmp_path / "out"
    code, lines = failure(capsys, *COMMON, "--build-dir", str(folder))
    assert (code, lines) == (130, [f"interrupted; finished steps are kept in {folder}"])
    assert (folder / "placed.config").is_file()
    assert not (folder / "top.bit").exists()
    assert not (folder / "package").exists()
    assert fakes.calls()
