"""Pads of a Gowin: what their fuses tell, by the packer's own tables."""

from __future__ import annotations

from typing import Any

import pytest
from apycula import attrids, gowin_pack

from lbq_hw.bitstream import gowin


def fuses(chip: Any, kind: str, row: int, column: int) -> set[tuple[int, int]]:
    """Those of a buffer of 3.3 V at the edge of a device."""
    words: set[int] = set()
    asked = gowin_pack._init_io_attrs[kind] | {"BANK_VCCIO": "3.3", "IO_TYPE": "LVCMOS33"}
    for name, value in asked.items():
        gowin_pack.add_attr_val(
            chip, "IOB", words, attrids.iob_attrids[name], attrids.iob_attrvals[value]
        )
    down, right = chip[row, column].bels["IOBA"].fuse_cell_offset or (0, 0)
    place = chip[row + down, column + right].ttyp
    return gowin_pack.get_longval_fuses(chip, place, words, "IOBA")


@pytest.mark.parametrize(("device", "row", "column"), [("GW2A-18C", 10, 0), ("GW1N-9C", 0, 1)])
def test_an_output_that_is_read_too_has_the_fuses_of_an_output(
    device: str, row: int, column: int
) -> None:
    chip = gowin.tables(device)
    assert fuses(chip, "TBUF", row, column)
    assert fuses(chip, "TBUF", row, column) == fuses(chip, "IOBUF", row, column)
