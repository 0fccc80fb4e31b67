"""Golden bitstreams taken apart: what they hold, and that no flipped bit passes."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lbq_hw import bitstream, boards
from lbq_hw.bitstream import (
    BitsError,
    Files,
    UndecodedError,
    ecp5,
    ecp5_tiles,
    gowin,
    gowin_file,
    ice40_file,
)
from lbq_hw.bitstream.base import Asked, Decoded, compare
from lbq_hw.boards import Board
from lbq_hw.boards.clocks import Setting

HERE = Path(__file__).parent
NAMES = ("icebreaker", "ice40-hx8k", "ulx3s-12f", "tang-nano-9k")


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Files]:
    """Files of a board's golden build, as `make` in this folder writes them."""
    root = tmp_path_factory.mktemp("golden")

    def unpack(name: str) -> Files:
        folder = root / name
        if not folder.is_dir():
            with tarfile.open(HERE / f"{name}.tar.xz") as archive:
                archive.extractall(folder, filter="data")
        return bitstream.files(folder, boards.find(name))

    return unpack


def check(files: Files, board: Board) -> dict:
    setting = json.loads((files.netlist.parent / "setting.json").read_text(encoding="utf-8"))
    return bitstream.check(files, board, Setting(**setting))


@pytest.mark.parametrize(
    ("name", "idcode", "summary"),
    [
        (
            "icebreaker",
            None,
            "799,104 bits as routed (iCE40 5k); PLL, 4 pins and the contents of 1 block RAMs as "
            "asked",
        ),
        (
            "ice40-hx8k",
            None,
            "1,040,384 bits as routed (iCE40 8k); PLL, 4 pins and the contents of 1 block RAMs as "
            "asked",
        ),
        (
            "ulx3s-12f",
            "0x21111043",
            "4,495,136 bits as routed (LFE5U-12F, IDCODE 0x21111043); PLL, 5 pins and the contents "
            "of 1 block RAMs as asked",
        ),
        (
            "tang-nano-9k",
            "0x1100481b",
            "3,471,264 bits as routed (GW1N-9C, IDCODE 0x1100481b); PLL, 4 pins and the contents "
            "of 1 block RAMs as asked",
        ),
    ],
)
def test_a_bitstream_holds_what_was_routed_and_asked_for(
    name: str, idcode: str | None, summary: str, golden: Callable[[str], Files]
) -> None:
    found = check(golden(name), boards.find(name))
    assert (found["summary"], found["idcode"]) == (summary, idcode)


def flips(
    name: str,
    count: int,
    golden: Callable[[str], Files],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> int:
    """How many of `count` files with one flipped bit each are reported."""
    files, board = golden(name), boards.find(name)
    read_once(monkeypatch, files, board)
    data = files.packed.read_bytes()
    places = np.random.default_rng(28).choice(8 * len(data), count, replace=False)
    reported = 0
    for place in map(int, places):
        spoilt = bytearray(data)
        spoilt[place // 8] ^= 1 << place % 8
        packed = folder / files.packed.name
        packed.write_bytes(spoilt)
        try:
            check(replace(files, packed=packed), board)
        except BitsError as error:
            reported += not isinstance(error, UndecodedError) and "\n" not in str(error)
    return reported


def read_once(monkeypatch: pytest.MonkeyPatch, files: Files, board: Board) -> None:
    """Let the routed design be read only once: it does not change here."""
    if board.family == "ice40":
        routed = ice40_file.read_text(files.placed.read_text(encoding="utf-8"))
        monkeypatch.setattr(ice40_file, "read_text", lambda _: routed)
    elif board.family == "gowin":
        frame = gowin.frame(gowin.tables("GW1N-9C"))
        again = gowin._packed_again(files, board, frame)
        monkeypatch.setattr(gowin, "_packed_again", lambda *_: again)
    else:
        config = ecp5_tiles.read_config(files.placed.read_text(encoding="utf-8"))
        frames = ecp5_tiles.Device(config.device, ecp5_tiles.database()).encode(config)
        monkeypatch.setattr(ecp5_tiles.Device, "encode", lambda *_: frames)


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_anywhere_is_reported(
    name: str, golden: Callable[[str], Files], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert flips(name, 6, golden, tmp_path, monkeypatch) == 6


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_hundred_flipped_bits_are_reported(
    name: str, golden: Callable[[str], Files], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert flips(name, 100, golden, tmp_path, monkeypatch) == 100


def test_an_ice40_that_is_packed_right_but_not_as_routed_is_reported(
    golden: Callable[[str], Files], tmp_path: Path
) -> None:
    files = golden("icebreaker")
    image = ice40_file.decode(files.packed.read_bytes())
    image.tiles[7, 4][3, 20] ^= 1
    packed = tmp_path / "top.bin"
    packed.write_bytes(ice40_file.encode(image))
    with pytest.raises(BitsError, match=r"^bit B3\[20\] of tile 7 4 is not what the router wrote$"):
        check(replace(files, packed=packed), boards.find("icebreaker"))


def test_a_gowin_that_is_packed_right_but_not_as_routed_is_reported(
    golden: Callable[[str], Files], tmp_path: Path
) -> None:
    files, board = golden("tang-nano-9k"), boards.find("tang-nano-9k")
    frame = gowin.frame(gowin.tables("GW1N-9C"))
    found = gowin_file.decode(files.packed.read_bytes(), frame)
    fuses = found.fuses.copy()
    fuses[300, 1000] ^= 1
    packed = tmp_path / "top.fs"
    packed.write_bytes(gowin_file.encode(replace(found, fuses=fuses), frame))
    message = "^fuse 1000 of row 300 is not what the routed design is packed to$"
    with pytest.raises(BitsError, match=message):
        check(replace(files, packed=packed), board)


def test_an_ecp5_that_was_routed_otherwise_is_reported(
    golden: Callable[[str], Files], tmp_path: Path
) -> None:
    files = golden("ulx3s-12f")
    text = files.placed.read_text(encoding="utf-8")
    assert "enum: PIOC.DRIVE 4" in text
    placed = tmp_path / "placed.config"
    placed.write_text(text.replace("enum: PIOC.DRIVE 4", "enum: PIOC.DRIVE 16"), encoding="utf-8")
    with pytest.raises(
        BitsError,
        match=r"^bit \d+ of frame \d+ \(tile MIB_R15C0:PICL1\) is not what the router wrote$",
    ):
        check(replace(files, placed=placed), boards.find("ulx3s-12f"))


Enums = list[tuple[str, str]]


def pins_with(files: Files, tiles: dict[str, Enums]) -> dict[str, str]:
    """The pins of an ULX3S-12F's design if some of its tiles had other settings."""
    config = ecp5_tiles.read_config(files.placed.read_text(encoding="utf-8"))
    for tile, enums in tiles.items():
        config.tiles[tile] = ecp5_tiles.Settings(tiles=(tile,), enums=enums)
    folder = ecp5_tiles.database()
    assert folder is not None
    device = ecp5_tiles.Device(config.device, folder)
    return ecp5._pins(device.encode(config), config, device, "CABGA381")


def test_an_ecp5_pad_whose_drive_is_laid_over_its_kind_is_read(
    golden: Callable[[str], Files],
) -> None:
    """A data pin of an ULX3S's SDRAM, with the settings that nextpnr writes for it."""
    kind = ("PIOA.BASE_TYPE", "BIDIR_LVCMOS33")
    given = {"HYSTERESIS": "ON", "SLEWRATE": "FAST", "PULLMODE": "NONE", "DRIVE": "4"}
    enums = [kind, *((f"PIOA.{name}", value) for name, value in given.items())]
    pins = pins_with(golden("ulx3s-12f"), {"MIB_R14C72:PICR0": [kind], "MIB_R15C72:PICR1": enums})
    assert pins["C20"] == "inout (LVCMOS33, pull none)"


def test_four_ecp5_pads_of_one_tile_are_read(golden: Callable[[str], Files]) -> None:
    """Data pins of an ULX3S's SDRAM that share a tile, and bits of their pulls."""
    given = {"HYSTERESIS": "ON", "SLEWRATE": "FAST", "PULLMODE": "NONE", "DRIVE": "4"}
    kinds = {pad: (f"PIO{pad}.BASE_TYPE", "BIDIR_LVCMOS33") for pad in "ABCD"}
    enums = [
        setting
        for pad, kind in kinds.items()
        for setting in (kind, *((f"PIO{pad}.{name}", value) for name, value in given.items()))
    ]
    pins = pins_with(
        golden("ulx3s-12f"),
        {
            "MIB_R14C72:PICR0": [kinds["A"], kinds["B"]],
            "MIB_R15C72:PICR1": enums,
            "MIB_R16C72:PICR2": [kinds["C"], kinds["D"]],
        },
    )
    assert pins["C20"] == "inout (LVCMOS33, pull none)"
    assert not [function for function in pins.values() if "/" in function]


def test_an_ecp5_pad_beside_an_unused_one_of_its_pair_is_read(
    golden: Callable[[str], Files],
) -> None:
    """The Versa's serial line: pads B alone, at the top, whose tile has bits of a pair with A."""
    kind = ("PIOB.BASE_TYPE", "OUTPUT_LVCMOS33")
    enums = [kind, ("PIOB.PULLMODE", "UP")]
    pins = pins_with(golden("ulx3s-12f"), {"MIB_R0C28:PIOT1": enums, "MIB_R1C28:PICT1": [kind]})
    assert pins["A11"] == "output (LVCMOS33, pull up)"


def test_an_ecp5_whose_pll_has_no_loop_filter_is_refused(
    golden: Callable[[str], Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    word = ecp5_tiles.Device.word

    def without(self, frames, tiles, name):
        return 0 if name == "ICP_CURRENT" else word(self, frames, tiles, name)

    monkeypatch.setattr(ecp5_tiles.Device, "word", without)
    with pytest.raises(
        BitsError,
        match=r"^the PLL of the bitstream has no charge pump or no loop filter \(ICP_CURRENT = 0, "
        r"MFG_ENABLE_FILTEROPAMP = 1\), and would never lock: give it the attributes that ecppll "
        "writes$",
    ):
        check(golden("ulx3s-12f"), boards.find("ulx3s-12f"))


def test_a_die_without_tables_is_not_decoded(
    golden: Callable[[str], Files], tmp_path: Path
) -> None:
    placed = tmp_path / "placed.asc"
    placed.write_text(".device 1k\n", encoding="utf-8")
    with pytest.raises(UndecodedError, match=r"^the die must be one of 5k, 8k, not '1k'$"):
        check(replace(golden("icebreaker"), placed=placed), boards.find("icebreaker"))


FOUND = Decoded(
    device="X",
    idcode=1,
    bits=8,
    pll={"DIVR": 0, "DIVF": 3},
    pins={"A1": "input", "B2": "output"},
    memories=(b"a", b"b"),
)
ASKED = Asked(idcode=1, pll={"DIVF": 3}, pins=FOUND.pins, memories=(b"a", b"b"))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            replace(ASKED, idcode=2),
            "the bitstream is for the IDCODE 0x00000001, but the board's device has 0x00000002: "
            "see `device`, `place` and `pack` of the board's file",
        ),
        (
            replace(ASKED, pll={"DIVF": 4}),
            "the PLL of the bitstream has DIVF = 3, but 4 was asked for",
        ),
        (
            replace(ASKED, pll={"DIVQ": 4}),
            "the PLL of the bitstream has DIVQ = nothing, but 4 was asked for",
        ),
        (replace(ASKED, pll={}), "the bitstream has a PLL, but none was asked for"),
        (
            replace(ASKED, pins={"A1": "output", "B2": "output"}),
            "pin A1 of the bitstream is input, but output was asked for",
        ),
        (
            replace(ASKED, pins={"A1": "input"}),
            "pin B2 of the bitstream is output, but unused was asked for",
        ),
        (
            replace(ASKED, memories=(b"a", b"c", b"d")),
            "the contents of 2 block RAMs of the netlist are not in the bitstream, and 1 block "
            "RAMs hold what the netlist does not",
        ),
    ],
)
def test_what_was_not_asked_for_is_said_in_one_sentence(asked: Asked, sentence: str) -> None:
    with pytest.raises(BitsError) as caught:
        compare(FOUND, asked)
    assert str(caught.value) == sentence


def test_what_was_asked_for_passes() -> None:
    compare(FOUND, ASKED)


@pytest.mark.parametrize(
    ("names", "way"),
    [
        (("OPENDRAIN", "DRIVE", "IO_TYPE", "PADDI"), "input"),
        (("SLEWRATE", "PERSISTENT", "ODMUX"), "output"),
        (("OPENDRAIN", "IO_TYPE", "DRIVE_LEVEL", "DRIVE", "ODMUX", "PADDI"), "output"),
        (("OPENDRAIN", "DRIVE", "IO_TYPE", "ODMUX", "PADDI"), "output"),
        (("BANK_VCCIO",), ""),
    ],
    ids=["input", "output", "output of 1.8 V", "output that is read", "unused"],
)
def test_the_way_of_a_pin_of_a_gowin_follows_from_its_settings(
    names: tuple[str, ...], way: str
) -> None:
    """As the LED of a Tang Nano 9K is decoded, and its clock, UART and unused pads."""
    assert gowin.way_of(dict.fromkeys(names, 1)) == way
