"""The first steps on made-up machines: each way in which they fail, and what they say then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from first_light import JTAG, LINK, Fake

from lbq_hw.bring_up import plug
from lbq_hw.bring_up.walk import Finding
from lbq_hw.host.ports import Port

UPDATE = "https://wiki.sipeed.com/hardware/en/tang/common-doc/update_debugger.html"
CABLE = (
    "plug the board in with a cable that carries data, not through a hub, check that it is "
    "powered, and look for the device with lsusb"
)


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def said(finding: Finding) -> tuple[str, str, str]:
    return finding.state, finding.text, finding.mend


def test_the_board_is_found_on_the_usb(fake: Fake) -> None:
    fake.plug("1d6b:0002", product="root hub")
    fake.plug("0403:6010", manufacturer="SIPEED", product="USB Debugger", serial="2025030317")
    visit = fake.visit("tang-nano-20k")
    found = plug.usb(visit)
    text = "0403:6010 SIPEED USB Debugger, serial number 2025030317"
    assert said(found) == ("ok", text, "")
    assert found.facts == {
        "seen": ["1d6b:0002 root hub", "0403:6010 SIPEED USB Debugger"],
        "plugged": [text],
    }
    assert [device.id for device in visit.plugged] == ["0403:6010"]


@pytest.mark.parametrize(
    ("board", "mend"),
    [
        ("icebreaker", CABLE),
        (
            "orangecrab",
            f"{CABLE} (hold the board's button while you plug it in, so that its boot loader runs)",
        ),
    ],
)
def test_a_board_that_is_not_plugged_in(fake: Fake, board: str, mend: str) -> None:
    fake.plug("1d6b:0002")
    found = plug.usb(visit := fake.visit(board))
    named = " or ".join(plug.ids(visit))
    assert said(found) == ("failed", f"no USB device {named} among 1", mend)


def test_a_bridge_that_waits_for_its_software(fake: Fake) -> None:
    fake.plug("349b:6160", product="Bouffalo CDC DEMO")
    mend = f"the bridge waits for its firmware (349b:6160): write it as {UPDATE} says"
    found = plug.usb(fake.visit("tang-nano-20k"))
    assert said(found) == ("failed", "no USB device 0403:6010 among 1", mend)


def test_a_bridge_whose_version_is_known_not_to_work(fake: Fake) -> None:
    fake.plug("0403:6010", product="USB Debugger", serial="2024122312")
    text = (
        "0403:6010 USB Debugger, serial number 2024122312: its UART runs at four times the "
        "rate, and openFPGALoader does not work with it"
    )
    mend = f"write 2025012315 or newer to the bridge: {UPDATE}"
    assert said(plug.usb(fake.visit("tang-nano-20k"))) == ("failed", text, mend)


def test_a_system_that_does_not_show_usb_devices(fake: Fake) -> None:
    fake.sysfs = False
    visit = fake.visit("icebreaker")
    text = f"this system has no {visit.machine.usb}: look for 0403:6010 among its devices"
    assert said(plug.usb(visit)) == ("skipped", text, "")
    fake.ports = [LINK]
    assert said(plug.usb(fake.visit("icebreaker"))) == ("ok", "a serial port of 0403:6010", "")


def test_boards_without_a_usb_device(fake: Fake) -> None:
    assert said(plug.usb(fake.visit("sim"))) == ("skipped", "board sim is simulated", "")
    visit = fake.visit("icebreaker")
    visit.board = replace(visit.board, usb="")
    text = "the file of board icebreaker does not say what it is on the USB (usb)"
    assert said(plug.usb(visit)) == ("skipped", text, "")
    text = "board orangecrab is on the USB only while it is programmed"
    assert said(plug.usb(fake.visit("orangecrab", load=False))) == ("skipped", text, "")


def test_the_ports_that_can_be_the_link(fake: Fake) -> None:
    other = Port(name="ttyUSB7", what="CH340 (1a86:7523)", may=True, usb="1a86:7523")
    fake.ports = [JTAG, LINK, other]
    assert said(plug.port(fake.visit("icebreaker"))) == ("ok", f"ttyUSB1: {LINK.what}", "")
    # The OrangeCrab's link is an adapter.
    fake.ports = [other]
    assert said(plug.port(fake.visit("orangecrab"))) == ("ok", "ttyUSB7: CH340 (1a86:7523)", "")
    found = plug.port(fake.visit("icebreaker", port="ttyUSB7"))
    assert said(found) == ("ok", "ttyUSB7, as --port says: CH340 (1a86:7523)", "")
    assert said(plug.port(fake.visit("icebreaker", port="x"))) == ("ok", "x, as --port says", "")


def test_no_port_can_be_the_link(fake: Fake) -> None:
    mend = (
        "check that the kernel has the bridge's driver (sudo modprobe ftdi_sio, cdc_acm) and "
        "that no other program uses the bridge, and see docs/bring-up.md for this board's "
        "link"
    )
    text = "no serial port can be the link (of none)"
    assert said(plug.port(fake.visit("icebreaker"))) == ("failed", text, mend)
    fake.ports = [JTAG]
    text = "no serial port can be the link (of ttyUSB0)"
    assert said(plug.port(fake.visit("icebreaker"))) == ("failed", text, mend)
    mend = "start lbq sim-board --package DIR, and give the name that it prints as --port"
    text = "no serial port can be a simulated board's"
    assert said(plug.port(fake.visit("sim"))) == ("failed", text, mend)


def test_rights(fake: Fake) -> None:
    fake.plug("0403:6010")
    fake.ports = [JTAG, LINK]
    visit = fake.visit("icebreaker")
    plug.usb(visit)
    text = "2 device files can be read and written"
    assert said(plug.rights(visit)) == ("ok", text, "")
    dev = visit.machine.dev
    node, port = dev / "bus" / "usb" / "001" / "001", dev / "ttyUSB1"
    rules = (
        "write the udev rules of docs/bring-up.md to /etc/udev/rules.d/60-lbq.rules, sudo udevadm "
        "control --reload, and plug the board in again"
    )
    group = "sudo usermod -aG dialout $USER, then log out and in again"
    for closed, files, mend in (
        ({"001"}, f"{node}", rules),
        ({"ttyUSB1"}, f"{port}", group),
        ({"001", "ttyUSB1"}, f"{node} and {port}", f"{rules}; {group}"),
    ):
        fake.closed = closed
        assert said(plug.rights(visit)) == ("failed", f"no right to use {files}", mend)


def test_rights_of_a_system_without_device_files(fake: Fake) -> None:
    text = "this system has no device files for the board"
    assert said(plug.rights(fake.visit("icebreaker", port="COM3"))) == ("skipped", text, "")
