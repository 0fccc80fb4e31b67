"""Wires of a Gowin that cross many tiles."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbq_hw import bitstream, boards
from lbq_hw.bitstream import BitsError, gowin
from lbq_hw.bitstream.gowin_wires import Wires

GOLDEN = Path(__file__).parent / "tang-nano-9k.tar.xz"

# Row and column of a multiplexer, the wire that it drives, and from which: a segment's end, its
# branch in a row, and a wire of a tile beside the column.
WAYS = [
    [(0, 16, "LT02", "A6"), (10, 16, "LBO0", "LT01"), (10, 17, "W230", "LB31")],
    [(0, 16, "LT13", "B7"), (18, 16, "LBO1", "LT04"), (18, 15, "N270", "LB71")],
    [(28, 16, "LT02", "A6"), (22, 16, "LBO0", "LT01"), (22, 18, "CE1", "LB31")],
]


@pytest.mark.parametrize("way", WAYS, ids=["top", "second", "bottom"])
def test_a_segment_of_a_column_leads_from_its_end_to_the_tiles_beside_it(
    way: list[tuple[int, int, str, str]],
) -> None:
    chip: Any = gowin.tables("GW1N-9C")
    tiles = {
        (row, column): np.zeros((chip[row, column].height, chip[row, column].width), np.uint8)
        for row, column, *_ in way
    }
    for row, column, wire, source in way:
        for at in chip[row, column].pips[wire][source]:
            tiles[row, column][at] = 1
    wires = Wires(chip, tiles)
    row, column, last, _ = way[-1]
    found = wires.name(row, column, last)
    for row, column, _, source in reversed(way):
        assert wires.joined[found] == [wires.name(row, column, source)]
        [found] = wires.joined[found]


def test_a_wire_that_leads_to_nothing_is_an_error_and_no_constant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with tarfile.open(GOLDEN) as archive:
        archive.extractall(tmp_path, filter="data")
    board = boards.find("tang-nano-9k")
    files = bitstream.files(tmp_path, board)
    whole = Wires.joined.func
    assert bitstream.netlist(files, board, tmp_path).verilog.startswith("module chip")
    monkeypatch.setattr(
        Wires,
        "joined",
        property(lambda wires: {wire: ["R1C1_NONE"] for wire in whole(wires)}),
    )
    with pytest.raises(
        BitsError, match=r"^the fuses join the wire \w+ to a wire that nothing drives$"
    ):
        bitstream.netlist(files, board, tmp_path)
