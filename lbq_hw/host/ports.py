"""The serial ports of this machine: what each is, and which one leads to a core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from serial.tools import list_ports

from lbq_hw.host.line import LinkError

AUTO = "auto"
"""Stands for a port's name: find the port."""
CHIPS = {
    (0x0403, 0x6001): "FT232R",
    (0x0403, 0x6010): "FT2232",
    (0x0403, 0x6011): "FT4232",
    (0x0403, 0x6014): "FT232H",
    (0x0403, 0x6015): "FT231X",
    (0x067B, 0x2303): "PL2303",
    (0x10C4, 0xEA60): "CP2102",
    (0x1A86, 0x7523): "CH340",
}
"""USB bridges by vendor and product, for ports that report no name."""
_CHANNELS = {(0x0403, 0x6010): "AB", (0x0403, 0x6011): "ABCD"}


@dataclass(frozen=True, kw_only=True)
class Port:
    """A serial port: the `name` to open it by, `what` it is, and whether it `may` lead to a core.

    Ports that are not USB devices cannot lead to a core, and neither can the channel of a bridge
    that programs the board. `usb` is the device's ``vendor:product``, or empty.
    """

    name: str
    what: str
    may: bool
    usb: str = ""


def found() -> list[Port]:
    """All ports, in the order of their names."""
    return [_port(info) for info in sorted(list_ports.comports())]


def choose(ports: Sequence[Port], answers: Callable[[str], bool]) -> str:
    """The name of the port to use: the only possible port, or else the only port that answers.

    LinkError if there is no such port, or more than one.
    """
    names = [port.name for port in ports if port.may]
    if len(names) > 1:
        names = [name for name in names if answers(name)]
    if len(names) == 1:
        return names[0]
    seen = ", ".join(port.name for port in ports) or "none at all"
    if not names:
        raise LinkError(
            f"no port leads to this core (of {seen}): check that the board is plugged in and has "
            "its bitstream, or name its port with --port"
        )
    raise LinkError(f"{' and '.join(names)} lead to such a core: choose one with --port")


def _port(info: Any) -> Port:
    if info.vid is None:
        return Port(name=info.device, what="not USB", may=False)
    key = (info.vid, info.pid)
    told = " ".join(filter(None, (info.manufacturer, info.product)))
    usb = f"{info.vid:04x}:{info.pid:04x}"
    what = f"{told or CHIPS.get(key, 'USB serial port')} ({usb})"
    # Channel A programs boards with an FT2232 or what stands in for one; channel B is the link. Of
    # an FT4232, the link is any of the others.
    number = (info.location or "").rpartition(".")[2]
    channels = dict(enumerate(_CHANNELS.get(key, "")))
    channel = channels.get(int(number)) if number.isdecimal() else None
    if channel is not None:
        link = ": the link" if len(channels) == 2 else ""
        what += f", channel {channel}" + (": programs the board" if channel == "A" else link)
    return Port(name=info.device, what=what, may=channel != "A", usb=usb)
