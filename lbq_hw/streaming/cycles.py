"""The cycles of a step, exactly: when each item passes each stage of the streaming core.

A stage passes an item on as soon as it has the item and the next stage has room. An item waits only
for earlier items, so a single pass over all items in order finds every time. `machine` finds the
work; the constants come from the contracts of the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.machine import LayerWork, RowWork, TileWork

PLACES, MARKS, WORDS = 4, 8, 4
"""Depths of the queues in front of the row fetch, the neurons and the scanner."""
_NEVER = -(1 << 30)


def step_cycles(config: StreamConfig, work: Sequence[LayerWork]) -> list[int]:
    """Cycles of each layer of a step, including the loading of its records. The last layer includes
    the clearing of the input's map. The core counts their sum.
    """
    own = records.words_of(records.layer_fields(config))
    parts = records.words_of(records.path_fields(config))
    cycles = [own + parts * len(one.paths) + 2 + _Layer(config, one).done for one in work]
    cycles[-1] += work[-1].layer["input_last"] + 1
    return cycles


class _Layer:
    """The times of one layer, counted from the cycle in which it starts."""

    def __init__(self, config: StreamConfig, work: LayerWork) -> None:
        self._work, self._stages = work, config.planes + 4
        self._beats = work.layer["beats_last"] + 1
        self._places: list[int] = []  # cycles in which the places left their queue
        self._marks: list[int] = []
        self._words: list[int] = []
        # The cycles in which the last row was requested, taken, and finished.
        self._row_asked = self._row_taken = self._row_left = _NEVER
        self._word_asked = self._word_put = self._word_left = _NEVER
        self._event = _NEVER  # cycle from which the next event can be taken
        self._free = 1  # cycle from which the sequencer waits for work
        self._beat_taken = self._beat_moved = self._beat_left = _NEVER
        self.done = self._run()

    def _run(self) -> int:
        now = 1
        for row in self._work.rows:
            now = self._row(row, now)
        return self._beat_left + self._stages + 1

    def _row(self, row: RowWork, now: int) -> int:
        """One output row that begins at `now`; returns when the next row begins."""
        now += 1
        for path, joined in zip(self._work.paths, row.joined, strict=False):
            now += path["rows_last"] + 2
            now += max(path["left"], path["right"]) + 1 if joined else 0
        for tiles in row.visits:
            now = max(now, _room(self._marks, MARKS), _room(self._places, PLACES))
            self._visit(tiles, now)
            now += 1
        if not row.visits:
            now = max(now, _room(self._marks, MARKS))
            self._marks.append(self._beat(max(now + 1, self._free), 1))
            self._free = self._marks[-1] + 1
            now += 1
        return now

    def _visit(self, tiles: list[TileWork], now: int) -> None:
        here = now + 1
        for tile in tiles:
            ends = len(tile.rows) - 1
            for number, words in enumerate(tile.rows):
                self._fetch(words, here, number == ends)
            self._update(tile, here)
        self._places.append(self._row_asked)
        self._marks.append(self._beat_taken)

    def _fetch(self, words: list[int], here: int, end: bool) -> None:
        """One row of a window and the words in it."""
        self._row_asked = max(self._row_asked + 1, self._row_taken, here)
        taken = max(self._row_asked + 1, self._row_left)
        self._row_taken = taken
        self._row_left = taken + 1
        words = words or ([0] if end else [])
        for number, events in enumerate(words):
            self._word(events, taken + 1, end and number == len(words) - 1)
            self._row_left = self._word_asked

    def _word(self, events: int, here: int, end: bool) -> None:
        self._word_asked = max(self._word_asked + 1, self._word_put, here)
        put = max(self._word_asked + 1, self._word_put + 1, _room(self._words, WORDS))
        self._word_put = put
        taken = max(put + 1, self._word_left)
        self._words.append(taken)
        self._word_left = taken + 1
        count = events or int(end)
        if count:
            self._word_left = max(taken + 1, self._event) + count - 1
            self._event = self._word_left + 1

    def _update(self, tile: TileWork, here: int) -> None:
        """The sums of a tile, which are complete in the cycle after its last event."""
        taken = max(self._word_left + 1, self._free, here)
        self._event = max(self._event, taken)
        beats = tile.leaks + [1] * (self._beats - len(tile.leaks))
        at = taken + 1
        for leaks in beats:
            at = self._beat(at, leaks) + 1
        self._free = at

    def _beat(self, here: int, leaks: int) -> int:
        """A beat that is offered at `here`; returns the cycle in which it is taken."""
        taken = max(here, self._beat_moved)
        self._beat_moved = max(taken + 1, self._beat_left)
        self._beat_left = self._beat_moved + leaks
        self._beat_taken = taken
        return taken


def _room(left: list[int], depth: int) -> int:
    """The cycle from which a queue has room for its next item; `left` has the cycle in which each
    item left it.
    """
    return left[-depth] + 1 if len(left) >= depth else _NEVER
