"""The door: pixels in, results out, for a host behind the link.

A WRITE to `DOOR` appends its words to the pixels of the inputs to be run; the address within the
region is ignored. Words hold pixels without gaps, lowest bits first, row by row, the channels of a
pixel side by side. Every input begins with a new word. The core runs as soon as the last pixel of
an input has come, and the next input may come meanwhile.

A READ that begins at ``DOOR + CYCLES`` waits for the end of a run, if a run is in progress or about
to begin. It returns the low half of the register `cycles`. The next word, at `NUMBER`, is the
number of runs since the last clear, modulo 2**`NUMBER_BITS`, with bit `NUMBER_BITS` set if the last
run ended with an error. Then come the slices of the logits, from address `DOOR` on, because a READ
counts up only in its lowest 8 bits. The result is kept until its last slice was read, or until
pixels come for which there is no room.

Bit 1 of the register `control` drops pixels and results, and restarts the number at 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbq_hw.isa import link, regions
from lbq_hw.isa.pixels import PixelLayout

DOOR = 14 << regions.SHIFT
CYCLES, NUMBER = 254, 255
NUMBER_BITS = 8
MOST_RESULTS = link.FRAME_WORDS - 2
"""Slices of a result, at most: one reply has all of them, with its cycles and its number."""
MOST_QUEUED = 1 << 20
"""Words of pixels that can wait, at most: more than a chip has memory for."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The parameters of a core's door: the pixels of an input, the slices of a result, and the
    number of words of pixels that can wait during a run.
    """

    pixels: PixelLayout
    results: int
    queue: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.results <= MOST_RESULTS:
            raise ValueError(f"results must be 1..{MOST_RESULTS}, not {self.results!r}")
        if self.queue and self.queue < self.pixels.words + 1:
            raise ValueError(
                f"queue must be 0 or hold the {self.pixels.words} words of an input and one more, "
                f"not {self.queue!r}"
            )
        if self.queue > MOST_QUEUED:
            raise ValueError(f"queue must be at most {MOST_QUEUED}, not {self.queue!r}")
