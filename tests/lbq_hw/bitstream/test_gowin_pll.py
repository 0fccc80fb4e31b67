"""PLLs of a Gowin, of which several lie above each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from apycula import gowin_pack

from lbq_hw.bitstream import gowin

ROWS, LEFT, RIGHT = (9, 45), (1, 2, 3), (52, 53, 54)
ASKED = {"FCLKIN": "27", "IDIV_SEL": "0", "FBDIV_SEL": f"{2:b}", "ODIV_SEL": f"{8:b}"}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("columns", [LEFT, RIGHT], ids=["left", "right"])
def test_the_pll_that_is_on_is_found_among_four(
    row: int, columns: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gowin_pack, "device", "GW2A-18C")
    chip: Any = gowin.tables("GW2A-18C")
    tiles = {}
    for at in ((y, x) for y in ROWS for x in LEFT + RIGHT):
        tiles[at] = np.zeros((chip[at].height, chip[at].width), np.uint8)
        if at[0] == row and at[1] in columns:
            words = gowin_pack.set_pll_attrs(chip, "RPLL", 0, dict(ASKED))
            for fuse in gowin_pack.get_shortval_fuses(chip, chip[at].ttyp, words, "PLL"):
                tiles[at][fuse] = 1
        else:
            tiles[at][0, 0] = 1  # a fuse of something else
    found = gowin.pll(chip, tiles)
    assert found["place"] == f"R{row + 1}C{columns[0] + 1}"
    assert (found["IDIV_SEL"], found["FBDIV_SEL"], found["ODIV_SEL"]) == (0, 2, 8)
