"""The walk from end to end on made-up machines: what is printed, the report, the exit codes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from first_light import JTAG, LINK, Core, Fake, pack

import lbq_hw
from lbq_hw.bring_up import __main__ as command
from lbq_hw.bring_up.__main__ import main
from lbq_hw.bring_up.machine import Machine, Ran
from lbq_hw.bring_up.steps import STEPS
from lbq_hw.bring_up.walk import failed
from lbq_hw.package import Package

NAMES = ["usb", "port", "rights", "tool", "load", "link", "memory", "self-test", "rate"]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return pack(tmp_path_factory.mktemp("main"))


@pytest.fixture
def fake(tmp_path: Path, packed: Package, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """An iCEBreaker whose self-test is left out: the model of the link computes nothing."""
    monkeypatch.chdir(tmp_path)
    made = Fake(tmp_path, ports=[JTAG, LINK], open=Core(packed).open)
    made.plug("0403:6010", product="iCEBreaker V1.0e")
    made.tools = {"iceprog": lambda _: Ran(code=0, output="Bye.")}
    return made


def walked(
    capsys: pytest.CaptureFixture[str], machine: Machine, *arguments: str
) -> tuple[int, dict[str, str]]:
    code = main(["--board", "icebreaker", *arguments, "--json"], machine=machine)
    facts = json.loads(capsys.readouterr().out)
    assert [step["name"] for step in facts["steps"]] == NAMES
    assert facts["passed"] == (code == 0)
    return code, {step["name"]: step["state"] for step in facts["steps"]}


def test_without_a_package_the_walk_ends_before_the_load(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--board", "icebreaker"], machine=fake.machine()) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok       usb        0403:6010 iCEBreaker V1.0e",
        f"ok       port       ttyUSB1: {LINK.what}",
        "ok       rights     2 device files can be read and written",
        "ok       tool       iceprog (/bin/iceprog)",
        *(
            f"skipped  {name:9}  needs a package: give --package"
            for name in ("load", "link", "memory", "self-test", "rate")
        ),
        "For a bug report: bring-up-icebreaker.md",
    ]


def test_a_failure_is_shown_with_its_mend_and_what_needs_it_is_left_out(
    fake: Fake, packed: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.tools = {"iceprog": lambda _: Ran(code=1, output="no [device]")}
    arguments = ["--board", "icebreaker", "--package", str(packed.folder)]
    assert main(arguments, machine=fake.machine()) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[4] == "failed   load       iceprog ended with exit code 1: no [device]"
    assert re.match(r" {20}check that the board is powered, ", shown[5])
    assert shown[6:10] == [
        f"skipped  {name:9}  not reached: load failed"
        for name in ("link", "memory", "self-test", "rate")
    ]


@pytest.mark.parametrize(
    ("broken", "reached"),
    [
        ("tool", ["usb", "port", "rights"]),
        ("usb", ["tool"]),
        ("port", ["usb", "rights", "tool", "load"]),
        ("rights", ["usb", "port", "tool"]),
        ("load", ["usb", "port", "rights", "tool"]),
        ("link", ["usb", "port", "rights", "tool", "load"]),
    ],
)
def test_each_failure_leaves_out_what_makes_no_sense_without_it(
    broken: str,
    reached: list[str],
    fake: Fake,
    packed: Package,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if broken == "tool":
        fake.tools = {}
    if broken == "usb":
        fake.devices.clear()
    if broken == "port":
        fake.ports = [JTAG]
    if broken == "rights":
        fake.closed = {"ttyUSB1"}
    if broken == "load":
        fake.tools = {"iceprog": lambda _: Ran(code=1, output="")}
    if broken == "link":
        fake.open = Fake(fake.folder).open
    code, states = walked(capsys, fake.machine(), "--package", str(packed.folder))
    assert code == 1
    assert [name for name, state in states.items() if state == "failed"] == [broken]
    assert [name for name, state in states.items() if state == "ok"] == reached


def test_a_failed_self_test_does_not_keep_the_rate_from_being_measured(
    fake: Fake,
    packed: Package,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model of the link computes nothing, so that its logits are wrong."""
    code, states = walked(capsys, fake.machine(), "--package", str(packed.folder))
    assert code == 1
    assert {name for name, state in states.items() if state != "ok"} == {"memory", "self-test"}
    assert (states["memory"], states["self-test"]) == ("skipped", "failed")
    bad = failed("3 words differ", "a lower --freq")
    steps = [replace(s, look=lambda _: bad) if s.name == "memory" else s for s in STEPS]
    monkeypatch.setattr(command, "STEPS", steps)
    _, states = walked(capsys, fake.machine(), "--package", str(packed.folder))
    assert (states["memory"], states["self-test"], states["rate"]) == ("failed", "skipped", "ok")


def test_a_bitstream_that_is_there_is_not_loaded_again(
    fake: Fake, packed: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.tools = {}
    _, states = walked(capsys, fake.machine(), "--package", str(packed.folder), "--no-load")
    assert (states["tool"], states["load"], states["link"]) == ("skipped", "skipped", "ok")
    assert fake.ran == []


def test_the_report_has_what_was_shown_and_everything_as_json(
    fake: Fake, packed: Package, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.closed = {"001"}
    arguments = ["--board", "icebreaker", "--package", str(packed.folder)]
    assert main([*arguments, "--report", "mine.md"], machine=fake.machine()) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == "For a bug report: mine.md"
    page = (tmp_path / "mine.md").read_text("utf-8")
    assert page.startswith("# Bring-up of icebreaker\n\n```\nlbq-hw ")
    assert "\n".join(shown[:-1]) in page
    (block,) = re.findall(r"^```json\n(.*?)^```$", page, re.M | re.S)
    facts = json.loads(block)
    assert (facts["board"], facts["version"]) == ("icebreaker", lbq_hw.__version__)
    assert facts["package"]["config"] == packed.config.digest
    (step,) = [step for step in facts["steps"] if step["name"] == "usb"]
    assert step["facts"]["plugged"] == ["0403:6010 iCEBreaker V1.0e"]


def test_what_keeps_it_from_beginning_is_told_in_one_line(
    fake: Fake, packed: Package, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = fake.machine()
    assert main(["--board", "icebraker"], machine=machine) == 2
    assert capsys.readouterr().err.startswith("error: no board 'icebraker': did you mean ")
    assert main(["--board", "icebreaker", "--package", str(tmp_path)], machine=machine) == 2
    text = f"error: {tmp_path} is not a package: it has no package.json\n"
    assert capsys.readouterr().err == text
    assert main(["--board", "ulx3s-85f", "--package", str(packed.folder)], machine=machine) == 2
    text = (
        f"error: {packed.folder} is for the board icebreaker, not ulx3s-85f: build one with lbq "
        "build --board ulx3s-85f\n"
    )
    assert capsys.readouterr().err == text
    assert main(["--board", "icebreaker", "--report", "/nowhere/x"], machine=machine) == 2
    text = "error: /nowhere/x cannot be written (No such file or directory)\n"
    assert capsys.readouterr().err == text


def test_an_interrupted_walk_leaves_its_report(
    fake: Fake, packed: Package, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> Ran:
        raise KeyboardInterrupt

    fake.tools = {"iceprog": interrupted}
    arguments = ["--board", "icebreaker", "--package", str(packed.folder)]
    assert main(arguments, machine=fake.machine()) == 130
    assert capsys.readouterr().err == "interrupted\n"
    page = (tmp_path / "bring-up-icebreaker.md").read_text("utf-8")
    assert "ok       rights" in page
    assert "load" not in page.partition("```json")[0]


def test_every_step_is_explained_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert re.findall(r"^  ([a-z-]+) {2,}\w", shown.partition("\nsteps:\n")[2], re.M) == NAMES
    assert [step.name for step in STEPS] == NAMES
