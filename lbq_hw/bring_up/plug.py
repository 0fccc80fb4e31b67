"""The steps of a board that is plugged in: the USB, its serial port, and who may use both."""

from __future__ import annotations

import re

from lbq_hw.bring_up.machine import Usb
from lbq_hw.bring_up.walk import Finding, Visit, failed, ok, skipped
from lbq_hw.host import ports
from lbq_hw.host.ports import Port

PAGE = "docs/bring-up.md"
_CABLE = (
    "plug the board in with a cable that carries data, not through a hub, check that it is "
    "powered, and look for the device with lsusb"
)
_PLUG = {"1209:5af0": "hold the board's button while you plug it in, so that its boot loader runs"}
_PROGRAMMED = "only to program"
"""Part of a board's `usb` if the link is a separate adapter."""
_UPDATE = "https://wiki.sipeed.com/hardware/en/tang/common-doc/update_debugger.html"
_BRIDGES = {
    "2024122312": "its UART runs at four times the rate, and openFPGALoader does not work with it",
}
"""Versions of a Tang Nano's bridge that do not work; the version is the USB serial number."""
_UPDATING = "349b:6160"
"""USB id of a Tang Nano's bridge that waits for its firmware, or has lost it."""


def ids(visit: Visit) -> tuple[str, ...]:
    """The USB ids that the board may have."""
    return tuple(re.findall(r"\b[0-9a-f]{4}:[0-9a-f]{4}\b", visit.board.usb))


def usb(visit: Visit) -> Finding:
    """Is the board on the USB?"""
    wanted = ids(visit)
    if not wanted:
        return _without_usb(visit)
    if not visit.load and _PROGRAMMED in visit.board.usb:
        return skipped(f"board {visit.board.name} is on the USB only while it is programmed")
    named = " or ".join(wanted)
    devices = visit.machine.devices()
    if devices is None:
        seen = sorted({port.usb for port in visit.machine.ports() if port.usb})
        if set(wanted) & set(seen):
            return ok(f"a serial port of {named}", seen=seen)
        return skipped(
            f"this system has no {visit.machine.usb}: look for {named} among its devices"
        )
    visit.plugged = tuple(device for device in devices if device.id in wanted)
    seen = [f"{device.id} {device.name}".strip() for device in devices]
    if not visit.plugged:
        if any(device.id == _UPDATING for device in devices):
            mend = f"the bridge waits for its firmware ({_UPDATING}): write it as {_UPDATE} says"
        else:
            mend = " ".join((_CABLE, *(f"({_PLUG[one]})" for one in wanted if one in _PLUG)))
        return failed(f"no USB device {named} among {len(devices)}", mend, seen=seen)
    facts = {"seen": seen, "plugged": [_spoken(device) for device in visit.plugged]}
    for device in visit.plugged:
        if device.serial in _BRIDGES:
            text = f"{_spoken(device)}: {_BRIDGES[device.serial]}"
            return failed(text, f"write 2025012315 or newer to the bridge: {_UPDATE}", **facts)
    return ok("; ".join(map(_spoken, visit.plugged)), **facts)


def port(visit: Visit) -> Finding:
    """Is there a serial port that can be the link?"""
    found = visit.machine.ports()
    facts = {"ports": [f"{one.name} {one.what}" for one in found]}
    if visit.port != ports.AUTO:
        known = [one.what for one in found if one.name == visit.port]
        return ok(f"{visit.port}, as --port says{''.join(f': {what}' for what in known)}", **facts)
    may = _candidates(visit)
    if may:
        return ok("; ".join(f"{one.name}: {one.what}" for one in may), **facts)
    if visit.board.family is None:
        return failed(
            "no serial port can be a simulated board's",
            "start lbq sim-board --package DIR, and give the name that it prints as --port",
            **facts,
        )
    return failed(
        f"no serial port can be the link (of {', '.join(one.name for one in found) or 'none'})",
        "check that the kernel has the bridge's driver (sudo modprobe ftdi_sio, cdc_acm) and that "
        f"no other program uses the bridge, and see {PAGE} for this board's link",
        **facts,
    )


def rights(visit: Visit) -> Finding:
    """May this user program the board, and open its port?"""
    machine = visit.machine
    usb_files = [file for device in visit.plugged for file in device.nodes if file.exists()]
    serial = [machine.dev / one.name for one in _serial(visit) if (machine.dev / one.name).exists()]
    if not usb_files + serial:
        return skipped("this system has no device files for the board")
    closed = [file for file in usb_files + serial if not machine.allowed(file)]
    facts = {"files": [str(file) for file in usb_files + serial]}
    if not closed:
        return ok(f"{len(usb_files + serial)} device files can be read and written", **facts)
    mends = []
    if any(file in usb_files for file in closed):
        mends.append(
            f"write the udev rules of {PAGE} to /etc/udev/rules.d/60-lbq.rules, sudo udevadm "
            "control --reload, and plug the board in again"
        )
    groups = sorted({machine.group(file) for file in closed if file in serial})
    mends += [f"sudo usermod -aG {one} $USER, then log out and in again" for one in groups]
    text = f"no right to use {' and '.join(map(str, closed))}"
    return failed(text, "; ".join(mends), **facts)


def _without_usb(visit: Visit) -> Finding:
    if visit.board.family is None:
        return skipped(f"board {visit.board.name} is simulated")
    return skipped(f"the file of board {visit.board.name} does not say what it is on the USB (usb)")


def _spoken(device: Usb) -> str:
    serial = f", serial number {device.serial}" if device.serial else ""
    return f"{device.id} {device.name}".strip() + serial


def _candidates(visit: Visit) -> list[Port]:
    """Ports that may lead to the board: its own ports, or any port if it has no bridge."""
    may = [one for one in visit.machine.ports() if one.may]
    return [one for one in may if one.usb in ids(visit)] or may


def _serial(visit: Visit) -> list[Port]:
    if visit.port == ports.AUTO:
        return _candidates(visit)
    return [Port(name=visit.port, what="", may=True)]
