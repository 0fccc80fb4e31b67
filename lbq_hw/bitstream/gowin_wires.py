"""Wires of a Gowin FPGA, and how the fuses of a bitstream join them, by Apycula's tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from lbq_hw.bitstream.gowin_file import Fuses

CONSTANTS = {"VCC": "1'b1", "VSS": "1'b0"}
LOGIC = re.compile(r"R(\d+)C(\d+)_(F|OF|Q|CIN|COUT)(\d)")
"""Names of logic outputs: row and column from 1, kind and number."""
_SEGMENT_PAIRS = 4
# Wires of length 1 that end in the tiles on both sides of their origin.
_CROSSING = ((0, 1, "N", "SN"), (2, 1, "S", "SN"), (1, 0, "W", "EW"), (1, 2, "E", "EW"))


class Wires:
    """Names of wires that cross tiles, and their drivers.

    If no fuse of a multiplexer is set, its wire has the default source of the tables.
    """

    def __init__(self, chip: Any, tiles: dict[tuple[int, int], Fuses]) -> None:
        self._chip, self._tiles = chip, tiles

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """Maps the other names of a wire that crosses tiles to the name that is kept."""
        from apycula.chipdb import wire2global

        chip, found = self._chip, {}
        for _, members in chip.nodes.values():
            names = sorted((len(wire), f"R{row + 1}C{column + 1}_{wire}")
                           for row, column, wire in members)  # fmt: skip
            found |= {name: names[0][1] for _, name in names[1:]}
        for kept, wires in self._segments():
            found |= {wire2global(row + 1, column + 1, chip, wire): kept
                      for row, column, wire in wires}  # fmt: skip
        for row in range(chip.rows):
            for column in range(chip.cols):
                for down, right, wire, kept in _CROSSING:
                    for i in (1, 2):
                        name = wire2global(row + down, column + right, chip, f"{wire}1{i}1")
                        found[name] = f"R{row + 1}C{column + 1}_{kept}{i}0"
        return found

    def _segments(self) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
        """Wires along a column with a multiplexer at either end, and their branches into
        neighbouring tiles: the name that is kept, and all other names by row and column.
        """
        for (_, column, number), segment in self._chip.segments.items():
            down, across = ("LT01", "LBO0") if number < _SEGMENT_PAIRS else ("LT04", "LBO1")
            rows = range(segment["min_y"], segment["max_y"] + 1)
            ends = [(segment["top_row"], column, segment["top_wire"]),
                    (segment["bottom_row"], column, segment["bottom_wire"])]  # fmt: skip
            kept = f"R{segment['min_y'] + 1}C{column + 1}_SEGMENT{number}"
            yield kept, [*ends, *((row, column, down) for row in rows)]
            for row in rows:
                beside = range(segment["min_x"], segment["max_x"] + 1)
                branches = [(row, other, f"LB{number}1") for other in beside]
                yield f"R{row + 1}C{column + 1}_BRANCH{number}", [(row, column, across), *branches]

    def root(self, wire: str) -> str:
        """The name that is kept for a wire."""
        while wire in self._aliases:
            wire = self._aliases[wire]
        return wire

    @cached_property
    def joined(self) -> dict[str, list[str]]:
        """The sources that the fuses join to a wire. There are several if sources have the same
        fuses; then only one of them exists in the tile.
        """
        found: dict[str, list[str]] = {}
        for (row, column), fuses in self._tiles.items():
            ones = {(int(y), int(x)) for y, x in zip(*np.nonzero(fuses), strict=True)}
            tile = self._chip[row, column]
            for pips in (tile.pips, tile.clock_pips):
                for wire, sources in pips.items():
                    used = ones.intersection(set().union(*sources.values()))
                    chosen = [name for name, bits in sources.items() if bits == used]
                    if chosen:
                        names = [self.name(row, column, name) for name in chosen]
                        found.setdefault(self.name(row, column, wire), []).extend(names)
            for name, bel in tile.bels.items():
                if name.startswith("BUFS"):
                    # A set fuse disconnects the buffer of a long wire from its half of the chip.
                    half = "T" if row == 0 else "B"
                    for side, bits in bel.flags.items():
                        if not ones >= bits:
                            wire = self.name(row, column, f"LWSPINE{half}{side}{name[4:]}")
                            source = self.name(row, column, f"LW{half}{name[4:]}")
                            found.setdefault(wire, []).append(source)
        return found

    def name(self, row: int, column: int, wire: str) -> str:
        """The unique name of a wire of a tile."""
        from apycula.chipdb import wire2global

        return self.root(wire2global(row + 1, column + 1, self._chip, wire))

    def constant(self, wire: str) -> str | None:
        """The constant that the fuses join to a wire, if any."""
        wire, seen = self.root(wire), set()
        while wire not in CONSTANTS and wire not in seen and not LOGIC.fullmatch(wire):
            seen.add(wire)
            sources = self.joined.get(wire, ())
            wire = sources[0] if len(sources) == 1 else wire
        return CONSTANTS.get(wire)
