"""The computer that a board is plugged into: USB devices as Linux shows them, programs, rights."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lbq_hw.bring_up import machine
from lbq_hw.bring_up.machine import Machine, Ran, Usb


def test_devices_are_read_as_linux_shows_them(tmp_path: Path) -> None:
    usb, dev = tmp_path / "usb", tmp_path / "dev"
    facts = {
        "1-2": {
            "idVendor": "0d28", "idProduct": "0204", "busnum": "1", "devnum": "12",
            "manufacturer": "ARM", "product": "DAPLink CMSIS-DAP", "serial": "0700",
        },
        "usb1": {"idVendor": "1d6b", "idProduct": "0002", "busnum": "1", "devnum": "1"},
        "1-2:1.0": {"bInterfaceNumber": "00"},
    }  # fmt: skip
    for name, files in facts.items():
        (usb / name).mkdir(parents=True)
        for file, text in files.items():
            (usb / name / file).write_text(f"{text}\n")
    (usb / "1-2" / "1-2:1.3" / "0003:0D28:0204.0002" / "hidraw" / "hidraw1").mkdir(parents=True)
    assert Machine(usb=usb, dev=dev).devices() == [
        Usb(
            id="0d28:0204",
            name="ARM DAPLink CMSIS-DAP",
            serial="0700",
            nodes=(dev / "bus" / "usb" / "001" / "012", dev / "hidraw1"),
        ),
        Usb(id="1d6b:0002", name="", serial="", nodes=(dev / "bus" / "usb" / "001" / "001",)),
    ]
    assert Machine(usb=tmp_path / "none").devices() is None


def test_a_program_is_run_to_its_end() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    done = machine.run([sys.executable, "-u", "-c", code])
    assert done == Ran(code=3, output="out\nerr\n")
    assert machine.run(["/nowhere/tool"]).code == 127


def test_rights_and_groups_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "port"
    assert not machine.allowed(file)
    file.touch()
    assert machine.allowed(file)
    os.chown(file, -1, os.getgid())
    assert machine.group(file) in {machine.grp.getgrgid(os.getgid()).gr_name, str(os.getgid())}
