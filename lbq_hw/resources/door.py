"""The resources of a core's door: registers for pixels, rows of pixels, and a queue."""

from __future__ import annotations

from lbq_hw import families
from lbq_hw.boards import Board
from lbq_hw.isa.door import Opening
from lbq_hw.isa.record import SLICE
from lbq_hw.resources.memories import Memory, blocks
from lbq_hw.resources.model import Estimate

_REGISTERS = 220  # beside those of a field of view and of the slices that it becomes


def of_door(opening: Opening, board: Board) -> Estimate:
    """The approximate resources of a door."""
    pixels, family = opening.pixels, families.of(board)
    registers = _REGISTERS + (pixels.taps + 1) * pixels.pixel_bits
    registers += pixels.bits * (pixels.taps * pixels.channels + pixels.slice_bits)
    above = (pixels.kernel[0] - 1) * pixels.pixel_bits
    stores = [
        Memory(name=name, depth=depth, width=width, granule=width)
        for name, depth, width in (
            ("rows", pixels.padded[1], above),
            ("queue", opening.queue - 1, SLICE),
        )
        if width and depth > 0
    ]
    counts = {store: blocks(store, family) for store in stores}
    logic = sum(family.logic_cost(store) for store, count in counts.items() if not count)
    return Estimate(
        luts=round(family.register_luts * registers) + logic,
        block_rams=sum(counts.values()),
        sprams=0,
        fmax_hz=0.0,
    )


def cells_of_door(opening: Opening, board: Board) -> tuple[int, int]:
    """The approximate LUTs and block RAMs of a door."""
    found = of_door(opening, board)
    return found.luts, found.block_rams
