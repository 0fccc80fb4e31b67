"""The timing of the memory reader for a chip at a clock, in cycles.

The memory is read by the page. A page read is never paused: it begins only when the FIFO has room
for the whole page, and then brings one word per cycle. Between two pages the controller may
refresh. Refreshes are due at fixed cycles after the start of an inference, and are made at the next
decision. `lbq_hw.cycles.words` has the cycles that follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbq_hw.chips import CAS_LATENCY, Chip, usual

DELAYS = 7
"""Delays, in cycles, with which words can be sampled at the pins; calibration chooses one."""


@dataclass(frozen=True, kw_only=True)
class ReaderTiming:
    """Numbers of one controller and clock, all in cycles unless said otherwise.

    `word_bits`: 16 or 32. `page_words`: words of a page read. `fifo_pages`: pages that the FIFO
    holds. `first`: from a decision to the cycle in which the page's first word can be taken.
    `rest`: from the last word to the next decision; negative if the memory is free again while
    words are still in flight. `refresh`: from a decision for a refresh to the next decision.
    `interval`: from one due refresh to the next. `elapsed`: from the last due refresh before the
    start to the start; the first refresh of an inference is due that much earlier.
    """

    word_bits: int = 16
    page_words: int = 512
    fifo_pages: int = 2
    first: int = 8
    rest: int = 2
    refresh: int = 10
    interval: int = 600
    elapsed: int = 0

    def __post_init__(self) -> None:
        if self.word_bits not in (16, 32):
            raise ValueError(f"word_bits must be 16 or 32, not {self.word_bits!r}")
        for name in ("page_words", "fifo_pages", "interval"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        if self.refresh >= self.interval:
            raise ValueError(f"refresh must be less than interval, not {self.refresh!r}")
        if self.first + self.rest < 0:
            raise ValueError(f"rest must be at least {-self.first}, not {self.rest!r}")
        if not 0 <= self.elapsed < self.interval:
            raise ValueError(f"elapsed must be less than interval, not {self.elapsed!r}")

    @property
    def words_per_slice(self) -> int:
        """Memory words of one 32-bit slice of the tape."""
        return 32 // self.word_bits

    @property
    def rate(self) -> float:
        """Words per cycle while nothing waits."""
        page = self.first + self.page_words + self.rest
        return self.page_words / (page * (1 + self.refresh / self.interval))


def reader_timing(chip: Chip, clock_hz: int) -> ReaderTiming:
    """The timing of `lbq_hw.core.external.sdram.Sdram`, which is built from these numbers.

    A decision takes effect in the next cycle. Then a row is activated, read, and closed again.
    Words are always delayed as if the largest of the `DELAYS` were in use.
    """
    cycles = chip.cycles(clock_hz)
    first = cycles.rcd + CAS_LATENCY + DELAYS + 7
    return ReaderTiming(
        word_bits=chip.data_bits,
        page_words=chip.page_words,
        first=first,
        rest=cycles.rcd + cycles.rp - first,
        refresh=cycles.rfc,
        interval=cycles.refresh,
        elapsed=cycles.rfc + 1,
    )


def default_timing(word_bits: int) -> ReaderTiming:
    """The timing that is assumed for a memory of this width without a board."""
    return reader_timing(*usual(word_bits))
