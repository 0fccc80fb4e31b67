"""The program that loads a bitstream, and the load, on made-up machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from first_light import LINK, Fake, pack

from lbq_hw.bring_up import loading, plug
from lbq_hw.bring_up.machine import Ran
from lbq_hw.bring_up.walk import Finding, State

INSTALL = "https://trabucayre.github.io/openFPGALoader/guide/install.html"


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def said(finding: Finding) -> tuple[str, str, str]:
    return finding.state, finding.text, finding.mend


def loader(version: str, *names: str) -> Callable[[Sequence[str]], Ran]:
    def run(arguments: Sequence[str]) -> Ran:
        if arguments[0] == "--Version":
            return Ran(code=0, output=f"openFPGALoader v{version}\n")
        assert arguments[0] == "--list-boards"
        lines = [f"{name:20} ft2232" for name in ("board", *names)]
        return Ran(code=0, output="\n".join(lines))

    return run


def test_a_tool_that_knows_the_board(fake: Fake) -> None:
    fake.tools = {"openFPGALoader": loader("0.11.0", "tangnano20k")}
    found = loading.tool(fake.visit("tang-nano-20k"))
    assert said(found) == ("ok", "openFPGALoader 0.11.0 (/bin/openFPGALoader)", "")
    assert found.facts == {"path": "/bin/openFPGALoader", "version": "0.11.0"}
    fake.tools = {"iceprog": lambda _: Ran(code=1, output="")}
    assert said(loading.tool(fake.visit("icebreaker"))) == ("ok", "iceprog (/bin/iceprog)", "")
    assert len(fake.ran) == 2  # iceprog tells no version


def test_a_tool_that_is_missing(fake: Fake) -> None:
    found = loading.tool(fake.visit("icebreaker"))
    mend = "sudo apt install fpga-icestorm"
    assert said(found) == ("failed", "iceprog is not on the PATH", mend)
    found = loading.tool(fake.visit("icesugar"))
    mend = "build it from https://github.com/wuxx/icesugar"
    assert said(found) == ("failed", "icesprog is not on the PATH", mend)


def test_a_tool_that_is_too_old(fake: Fake) -> None:
    fake.tools = {"openFPGALoader": loader("0.10.0", "tangnano9k", "ft2232")}
    text = "openFPGALoader 0.10.0 does not know the board tangnano20k"
    found = loading.tool(fake.visit("tang-nano-20k"))
    assert said(found) == ("failed", text, f"install a newer one: {INSTALL}")


def test_the_version_that_cannot_load_an_ecp5_through_cmsis_dap(fake: Fake) -> None:
    fake.tools = {"openFPGALoader": loader("1.1.0", "colorlight-i5", "ulx3s")}
    text = "openFPGALoader 1.1.0 cannot load ECP5 devices through CMSIS-DAP"
    mend = f"install a newer one: {INSTALL}"
    for board in ("colorlight-i5", "icesugar-pro"):
        assert said(loading.tool(fake.visit(board))) == ("failed", text, mend)
    assert loading.tool(fake.visit("ulx3s-85f")).state == State.OK
    fake.tools = {"openFPGALoader": loader("1.1.1", "colorlight-i5")}
    assert loading.tool(fake.visit("colorlight-i5")).state == State.OK


def test_a_tool_that_is_not_needed(fake: Fake) -> None:
    assert said(loading.tool(fake.visit("sim"))) == ("skipped", "board sim is not programmed", "")
    found = loading.tool(fake.visit("icebreaker", load=False))
    assert said(found) == ("skipped", "left out, by --no-load", "")


def test_loading(fake: Fake, tmp_path: Path) -> None:
    packed = pack(tmp_path)
    command = ["iceprog", str(packed.bitstream)]
    fake.tools = {"iceprog": lambda _: Ran(code=0, output="cdone: low\rdone\ncdone: high\n")}
    found = loading.load(fake.visit("icebreaker", packed))
    assert said(found) == ("ok", " ".join(command), "")
    assert found.facts["output"] == ["cdone: low", "done", "cdone: high"]
    assert fake.ran == [command]
    fake.tools = {"iceprog": lambda _: Ran(code=2, output="init..\nCan't find iCE FTDI USB device")}
    found = loading.load(fake.visit("icebreaker", packed))
    mend = (
        "close every program that has a port of the board, see the step rights, and plug it in "
        "again"
    )
    text = "iceprog ended with exit code 2: Can't find iCE FTDI USB device"
    assert said(found) == ("failed", text, mend)


def test_after_a_load_the_port_is_waited_for(fake: Fake, tmp_path: Path) -> None:
    """A tool takes the bridge from the kernel, which needs a while to have the port again."""
    fake.ports = [LINK]
    looks = iter([[LINK], [], [], [LINK]])
    fake.tools = {"iceprog": lambda _: Ran(code=0, output="")}
    visit = fake.visit("icebreaker", pack(tmp_path))
    visit.machine = replace(visit.machine, ports=lambda: next(looks))
    assert loading.load(visit).state == State.OK
    assert fake.slept == [0.25, 0.25]
    assert next(looks, None) is None
    looks = iter([[LINK], *[[]] * 20])
    assert loading.load(visit).state == State.OK
    assert sum(fake.slept) == 0.5 + 5


CHAIN = (
    "check that the board is powered, and that jumpers and buttons are as in "
    "docs/bring-up.md; on a Tang Nano, close the UART and plug it in again"
)


@pytest.mark.parametrize(
    ("code", "output", "last", "mend"),
    [
        (-9, "", "it printed nothing", CHAIN),
        (1, "Error: no device found", "Error: no device found", CHAIN),
        (0, "cdone: high\nprogramming..\ncdone: low\nBye.", "Bye.", CHAIN),
        (
            1,
            "mismatch between target's idcode and bitstream idcode\n\tbitstream 0x1 current 0x2",
            "bitstream 0x1 current 0x2",
            "the board has another FPGA: see its marking, and build for the board of that name",
        ),
        (
            0,
            "Load SRAM DONE\nCRC check : FAIL",
            "CRC check : FAIL",
            "on a Tang Nano 20K, see the version of its bridge in docs/bring-up.md; else plug it "
            "in again",
        ),
    ],
)
def test_a_load_that_fails_says_what_mends_it(
    fake: Fake, tmp_path: Path, code: int, output: str, last: str, mend: str
) -> None:
    fake.tools = {"iceprog": lambda _: Ran(code=code, output=output)}
    found = loading.load(fake.visit("icebreaker", pack(tmp_path)))
    assert said(found) == ("failed", f"iceprog ended with exit code {code}: {last}", mend)


def test_what_is_not_loaded(fake: Fake, tmp_path: Path) -> None:
    packed = pack(tmp_path)
    found = loading.load(fake.visit("icebreaker", packed, load=False))
    assert said(found) == ("skipped", "left out, by --no-load", "")
    simulated = pack(tmp_path / "sim", board="sim")
    found = loading.load(fake.visit("sim", simulated))
    assert said(found) == ("skipped", "board sim has no bitstream", "")
    assert fake.ran == []


def test_a_board_with_another_bridge_has_another_name(fake: Fake, tmp_path: Path) -> None:
    """The ECPIX-5 from R03 on; a remark behind the command is none of its words."""
    fake.plug("0403:6011")
    fake.tools = {"openFPGALoader": loader("1.1.1", "ecpix5", "ecpix5_r03")}
    packed = pack(tmp_path, board="ecpix5-85f")
    visit = fake.visit("ecpix5-85f", packed)
    visit.board = replace(
        visit.board, program="openFPGALoader -b ecpix5 {}  # a remark", usb="0403:6010, 0403:6011"
    )
    assert plug.usb(visit).state == State.OK
    assert loading.tool(visit).state == State.OK
    fake.tools = {"openFPGALoader": lambda _: Ran(code=0, output="")}
    assert loading.load(visit).text == f"openFPGALoader -b ecpix5_r03 {packed.bitstream}"
