"""Serial ports: what each is, and which one is taken."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from lbq_hw.host import LinkError, ports
from lbq_hw.host.__main__ import main
from lbq_hw.host.ports import Port


def info(device: str, **facts: Any) -> ListPortInfo:
    made = ListPortInfo(device)
    for name, value in facts.items():
        setattr(made, name, value)
    return made


CHANNELS = [
    info("/dev/ttyUSB1", vid=0x0403, pid=0x6010, location="1-2:1.1", product="Dual RS232-HS"),
    info("/dev/ttyUSB0", vid=0x0403, pid=0x6010, location="1-2:1.0", product="Dual RS232-HS"),
]


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> list[ListPortInfo]:
    found: list[ListPortInfo] = []
    monkeypatch.setattr(list_ports, "comports", lambda: found)
    return found


def test_a_port_is_what_it_says_it_is(plugged: list[ListPortInfo]) -> None:
    plugged += [
        *CHANNELS,
        info("/dev/ttyS0"),
        info("/dev/ttyUSB2", vid=0x1A86, pid=0x7523),
        info("/dev/ttyACM0", vid=0x1209, pid=0x1, manufacturer="Some", product="Thing"),
        info("/dev/ttyACM1", vid=0x1209, pid=0x2),
        *(
            info(f"/dev/ttyUSB{3 + channel}", vid=0x0403, pid=0x6011, location=f"1-3:1.{channel}")
            for channel in range(4)
        ),
    ]
    assert [(port.name, port.what, port.may) for port in ports.found()] == [
        ("/dev/ttyACM0", "Some Thing (1209:0001)", True),
        ("/dev/ttyACM1", "USB serial port (1209:0002)", True),
        ("/dev/ttyS0", "not USB", False),
        ("/dev/ttyUSB0", "Dual RS232-HS (0403:6010), channel A: programs the board", False),
        ("/dev/ttyUSB1", "Dual RS232-HS (0403:6010), channel B: the link", True),
        ("/dev/ttyUSB2", "CH340 (1a86:7523)", True),
        ("/dev/ttyUSB3", "FT4232 (0403:6011), channel A: programs the board", False),
        ("/dev/ttyUSB4", "FT4232 (0403:6011), channel B", True),
        ("/dev/ttyUSB5", "FT4232 (0403:6011), channel C", True),
        ("/dev/ttyUSB6", "FT4232 (0403:6011), channel D", True),
    ]


def test_ports_are_listed(plugged: list[ListPortInfo], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--ports"]) == 0
    assert (
        capsys.readouterr().out == "no serial port: plug the board in, and see docs/bring-up.md\n"
    )
    plugged += CHANNELS[:1]
    assert main(["--ports"]) == 0
    what = "Dual RS232-HS (0403:6010), channel B: the link"
    assert capsys.readouterr().out == f"/dev/ttyUSB1  {what}\n"
    assert main(["--ports", "--json"]) == 0
    facts = [{"name": "/dev/ttyUSB1", "what": what, "may": True, "usb": "0403:6010"}]
    assert json.loads(capsys.readouterr().out) == facts


def port(name: str, *, may: bool = True) -> Port:
    return Port(name=name, what="", may=may)


def never(name: str) -> bool:
    raise AssertionError(f"{name} was asked")


def test_the_only_port_that_may_is_taken_unasked() -> None:
    assert ports.choose([port("a", may=False), port("b")], never) == "b"


def test_of_several_the_one_that_answers_is_taken() -> None:
    several = [port("a"), port("b"), port("c", may=False)]
    assert ports.choose(several, lambda name: name == "b") == "b"


@pytest.mark.parametrize(
    ("several", "text"),
    [
        (
            [],
            "no port leads to this core (of none at all): check that the board is plugged in "
            "and has its bitstream, or name its port with --port",
        ),
        (
            [port("a"), port("c", may=False), port("d")],
            "no port leads to this core (of a, c, d): check that the board is plugged in and "
            "has its bitstream, or name its port with --port",
        ),
    ],
)
def test_without_a_core_the_ports_are_named(several: list[Port], text: str) -> None:
    with pytest.raises(LinkError, match=f"^{re.escape(text)}$"):
        ports.choose(several, lambda _: False)


def test_two_boards_alike_are_not_guessed_between() -> None:
    text = r"^a and b lead to such a core: choose one with --port$"
    with pytest.raises(LinkError, match=text):
        ports.choose([port("a"), port("b")], lambda _: True)


def test_without_a_package_the_host_says_what_to_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err == "error: give --package, or --ports\n"
