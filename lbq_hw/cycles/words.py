"""The exact arrival times of words from external memory: a model of the memory controller.

All times depend only on the cycles in which words are taken; see `lbq_hw.chips.timing`.
"""

from __future__ import annotations

from lbq_hw.chips.timing import ReaderTiming


class WordStream:
    """The words of the tape in order; `take` tells in which cycles they are taken."""

    def __init__(self, timing: ReaderTiming) -> None:
        self._timing = timing
        self._taken = 0  # number of words taken
        self._free = 0  # cycle of the controller's next decision
        self._due = timing.interval - timing.elapsed
        self._begin = 0  # cycle in which the first word of the page can be taken
        self._ends: list[int] = []  # cycles in which the last words of the last pages were taken

    def copy(self) -> WordStream:
        other = WordStream(self._timing)
        other.__dict__.update(self.__dict__)
        other._ends = list(self._ends)
        return other

    def take(self, cycle: int, words: int) -> int:
        """Take `words` words, the first not before `cycle`; returns the cycle of the last word.

        Each word is taken as soon as it has arrived, at most one per cycle.
        """
        size = self._timing.page_words
        while words:
            place = self._taken % size
            if not place:
                self._open_page()
            count = min(words, size - place)
            last = max(cycle, self._begin + place) + count - 1
            if place + count == size:
                self._ends = [*self._ends, last][-self._timing.fifo_pages :]
            self._taken += count
            words -= count
            cycle = last + 1
        return cycle - 1

    def _open_page(self) -> None:
        timing = self._timing
        full = len(self._ends) == timing.fifo_pages
        room = self._ends[0] + 1 if full else 0
        now = self._free
        while self._due <= now or now < room:
            if self._due <= now:
                now += timing.refresh
                self._due += timing.interval
            else:
                now = min(room, self._due)
        self._begin = now + timing.first
        self._free = self._begin + timing.page_words + timing.rest
