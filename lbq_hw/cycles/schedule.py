"""The schedule of passes and of the tape, which is read in parallel with the computation.

The tape is a list of items, which the reader executes in order. An item waits until all passes that
still read the memory it overwrites are done. A pass begins when the previous pass is done and the
reader has reached its PASS item. The schedule is exact, given the cycles of each pass; see
docs/external-memory.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.cycles.words import WordStream

GATE = 2
"""Cycles from the last word of an item's head to the first word of its payload or CRC, without a
wait."""
EFFECT = 2
"""Cycles from the last word of an item to the cycle in which a pass may begin, or the next item's
head may be taken."""

TOLD = 1
"""Cycles from the end of the last pass until the host sees it."""


class OrderError(ValueError):
    """A deadlock: an item waits for a pass that waits for the item."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """`slices` of payload that may be written once `after` passes are done."""

    slices: int
    after: int = 0


@dataclass
class Schedule:
    """The state after some passes: cycles count from the start of the inference."""

    timing: ReaderTiming
    cycle: int = 1
    """Cycle in which the reader may take its next word."""
    ends: list[int] = field(default_factory=list)
    """Cycles in which the passes are done."""
    waited: int = 0
    """Cycles in which no pass ran."""
    slices: int = 0
    """Slices of the tape that were taken so far."""

    def __post_init__(self) -> None:
        self._stream = WordStream(self.timing)

    def copy(self) -> Schedule:
        other = Schedule(self.timing, self.cycle, list(self.ends), self.waited, self.slices)
        other._stream = self._stream.copy()
        return other

    def write(self, item: Item) -> None:
        """Add an item that writes."""
        if item.after > len(self.ends):
            raise OrderError(
                f"an item waits for pass {item.after - 1}, but only {len(self.ends)} passes "
                f"come before it on the tape"
            )
        self._item(item.slices, self.ends[item.after - 1] + 1 if item.after else 0)

    def run(self, cycles: int) -> None:
        """Add a PASS item and its pass."""
        self._item()
        free = self.ends[-1] if self.ends else 0
        start = max(free, self.cycle)
        self.waited += start - free
        self.ends.append(start + cycles)

    def finish(self) -> int:
        """Add the END item; returns the cycle in which the host sees the end of the inference."""
        self._item()
        return max(self.ends[-1] if self.ends else 0, self.cycle) + TOLD

    def _item(self, slices: int = 0, earliest: int = 0) -> None:
        """An item with `slices` of payload, which is taken from cycle `earliest` on."""
        gate = self._take(self.cycle, 2) + GATE
        self.cycle = self._take(max(gate, earliest), slices + 1) + EFFECT

    def _take(self, cycle: int, slices: int) -> int:
        self.slices += slices
        return self._stream.take(cycle, slices * self.timing.words_per_slice)
