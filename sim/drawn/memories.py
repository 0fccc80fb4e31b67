"""External memories of random cores: chips with a drawn refresh interval, at a drawn clock."""

from __future__ import annotations

import random
from dataclasses import replace

from lbq_hw import chips
from lbq_hw.sim.with_memory import Memory


def random_memory(word_bits: int, seed: int, *, row_bits: int = 7) -> Memory:
    """The usual chip of this width with drawn columns and refresh interval, at 25 to 120 MHz."""
    chip, _ = chips.usual(word_bits)
    source = random.Random(seed)
    clock_hz = source.choice((25, 40, 66, 100, 120)) * 1_000_000
    refresh = source.randint(3_000_000, chip.refresh)
    sizes = {"row_bits": row_bits, "column_bits": source.choice((6, 7, 8, 9))}
    chip = replace(chip, power_up=20_000_000, refresh=refresh, **sizes)
    return Memory(chip=chip, clock_hz=clock_hz)


def random_access(seed: int) -> int:
    """Picoseconds from a clock edge to a chip's valid words, for ``+sdram_access``."""
    return random.Random(seed).randint(4000, 5400)  # fast enough for the highest clock
