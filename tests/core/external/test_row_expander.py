# amaranth: UnusedElaboratable=no
"""RowExpander: rows of every width, as the compiler packs them, become the rows of the core."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator
from core.external.tape_bench import CORE

from lbq_hw.compiler.weights import slices
from lbq_hw.config import CoreConfig, narrow_mask
from lbq_hw.core.external.row_expander import RowExpander
from lbq_hw.isa import regions


@pytest.mark.parametrize(
    ("weight_bits", "widths", "lanes"),
    [(4, (3, 2), 8), (4, (3, 2), 32), (8, (5, 4, 2), 16), (6, (4,), 8), (3, (2,), 16)],
)
def test_signs_are_extended_in_rows_of_every_width(
    weight_bits: int, widths: tuple[int, ...], lanes: int
) -> None:
    sizes = dict.fromkeys(("lanes", "word", "channels", "logits"), lanes)
    sizes |= {"weight_bits": weight_bits, "partial_words": lanes // CORE.units}
    config = CORE.with_(**sizes, narrow=narrow_mask(widths))
    random, script, wanted = np.random.default_rng(lanes), [], []
    for bits in (weight_bits, *widths) * 5:
        row = random.integers(-(1 << bits - 1), 1 << bits - 1, lanes)
        packed = slices(row[None], config, bits)[0].tolist()
        given = shifted(config, packed)
        select = sum(1 << i for i, width in enumerate(config.narrow_bits) if width == bits)
        # What is below a narrow row is left from the row before.
        given |= int(random.integers(1 << 16)) & (1 << first_bit(config, len(packed))) - 1
        script.append((given, select))
        mask = (1 << weight_bits) - 1
        wanted.append(sum((int(w) & mask) << weight_bits * i for i, w in enumerate(row)))
    block, seen = RowExpander(config), []

    async def testbench(ctx: Any) -> None:
        for row, select in script:
            ctx.set(block.row, row)
            ctx.set(block.narrow, select)
            seen.append(ctx.get(block.expanded))

    simulator = Simulator(block)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen == wanted


def first_bit(config: CoreConfig, count: int) -> int:
    """Where a row of so many slices begins."""
    return config.lanes * config.weight_bits - count * regions.weight_slice_bits(config)


def shifted(config: CoreConfig, packed: list[int]) -> int:
    """The slices of a row as they lie once all have been shifted in from above."""
    used = regions.weight_slice_bits(config)
    row = sum(value << used * i for i, value in enumerate(packed))
    return row << first_bit(config, len(packed))
