"""The work of each step of a layer: its requests, words with a flag, and events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.config import CoreConfig
from lbq_hw.isa.contents import LayerRecords
from lbq_hw.network import INPUT
from lbq_hw.numeric import Integers

if TYPE_CHECKING:
    from lbq_hw.compiler import Program

Values = dict[str, int]
Levels = Mapping[str, NDArray[Any]]
BLOCK = 1 << 12  # steps that are computed at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """The steps of a layer in their order, one array entry each.

    `row`, `column`, `tile`, `wy`, `wx`, `t`: the loops of `lbq_hw.isa`. `skipped`: positions
    outside the layer that the walker visits before this step. `first`: the first step of its pixel
    and tile, which needs no earlier membrane. `last`: the last step of its pool window. `anew`: no
    earlier step had the same pixel, tile and timestep, as happens if max-pool windows overlap.
    """

    row: Integers
    column: Integers
    tile: Integers
    wy: Integers
    wx: Integers
    t: Integers
    skipped: Integers
    first: NDArray[np.bool_]
    last: NDArray[np.bool_]
    anew: NDArray[np.bool_]

    @classmethod
    def of(cls, layer: Values, *, pools: bool, continued: bool = False) -> Steps:
        """`pools`: there may be max-pool windows. `continued`: an earlier pass has the output rows
        above.
        """
        loops = ("rows", "columns", "tiles", "window_rows", "window_columns")
        grid = np.indices([layer[f"{loop}_last"] + 1 for loop in loops]).reshape(len(loops), -1)
        row, column, _, wy, wx = grid
        y = layer["window_row_init"] + row * layer["window_row_step"] + wy
        x = layer["window_column_init"] + column * layer["window_column_step"] + wx
        bottom, right = layer["conv_rows_last"], layer["conv_columns_last"]
        y_in, x_in = (y >= 0) & (y <= bottom), (x >= 0) & (x <= right)
        # Positions below or to the right are not visited; in a row above, only one position is.
        outside = np.where(y_in, x < 0, (y < 0) & (wx == 0))
        here = np.flatnonzero(y_in & x_in)
        skipped = np.diff(np.cumsum(outside)[here], prepend=0)
        last = (wy == layer["window_rows_last"]) | (y == bottom)
        last &= (wx == layer["window_columns_last"]) | (x == right)
        anew = np.full(len(here), not pools)
        place = (grid[2] * (bottom + 1) + y) * (right + 1) + x
        anew[np.unique(place[here], return_index=True)[1]] = True
        if pools and continued:  # what the window above has covered
            above = layer["window_row_init"] - layer["window_row_step"] + layer["window_rows_last"]
            anew &= y[here] > above
        times = 1 if layer["static"] else layer["time_last"] + 1
        t = np.tile(np.arange(times), len(here))
        row, column, tile, wy, wx = np.repeat(grid[:, here], times, axis=1)
        return cls(
            row=row,
            column=column,
            tile=tile,
            wy=wy,
            wx=wx,
            t=t,
            skipped=np.where(t == 0, np.repeat(skipped, times), 0),
            first=t == 0,
            last=np.repeat(last[here], times),
            anew=np.repeat(anew, times),
        )

    def __len__(self) -> int:
        return len(self.t)

    def part(self, start: int) -> Steps:
        """`BLOCK` of these steps, from `start` on."""
        return self.at(slice(start, start + BLOCK))

    def at(self, chosen: slice | Integers) -> Steps:
        """Some of these steps, in the given order."""
        return Steps(**{name: values[chosen] for name, values in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some steps of a layer: their work, and its totals.

    `requests` has one list per run, which holds one list per request: the number of events of each
    word with a flag. Null events count with the word before which they come, and with the last word
    at the end of a step. If no event carries the end of a step, the end is a word of its own,
    counted in `ends`, unless the last word had no bit in range. If the last run of a step has no
    request, it gets a request for this word.
    """

    steps: Steps
    requests: list[list[list[int]]]
    events: int
    nulls: int
    words: int
    ends: int
    asked: int
    empty: int
    acs: int


class Memory:
    """The plane words that one layer reads: their flags, and the number of set bits below each bit.

    After them comes a word with one bit, which stands for the end of a step.
    """

    def __init__(self, program: Program, raw: NDArray[np.uint8], levels: Levels, layer: int):
        word, summary = program.config.word, program.config.summary
        bits = np.zeros((program.config.plane_words + summary, word), np.bool_)
        for name in program.info[layer].sources:
            tensor = program.tensors[name]
            if name != INPUT and name not in levels:
                raise ValueError(f"levels must have those of {name!r}, not only {sorted(levels)}")
            packed = program.input_bits(raw) if name == INPUT else tensor.pack(levels[name])
            bits[tensor.base : tensor.end] = packed
        self.end = program.config.plane_words
        bits[self.end, 0] = True
        self.flags = np.asarray(bits.any(axis=1))
        self._below = _below(bits)
        odd = bits.copy()
        odd[:, ::2] = False
        self._odd_below = _below(odd) if program.config.pairs else None
        self._word = word

    def count(self, words: Integers, low: Integers, high: Integers) -> tuple[Integers, Integers]:
        """Number of set bits of words from bit `low` to bit `high`, both inclusive, and the cycles
        that they take: the same number, or with pairs the larger count of even and odd set bits.
        """
        start = words * self._word
        first, behind = start + low, start + high + 1
        bits = self._below[behind] - self._below[first]
        if self._odd_below is None:
            return bits, bits
        odd = self._odd_below[behind] - self._odd_below[first]
        return bits, np.maximum(odd, bits - odd)


class LayerWork:
    """Computes the requests, words and events of one layer or pass.

    `channels` from its first tile on; `continued`: see `Steps`. `event_cycles`: cycles to read a
    weight row, 1 in every core today.
    """

    def __init__(
        self,
        config: CoreConfig,
        records: LayerRecords,
        memory: Memory,
        channels: int,
        *,
        continued: bool = False,
        event_cycles: int = 1,
    ):
        self.config, self._event_cycles = config, event_cycles
        self.layer, self.paths = records.layer, records.paths
        self.steps = Steps.of(records.layer, pools=config.window > 1, continued=continued)
        self._channels, self._memory = channels, memory
        self._runs: list[tuple[Values, Values, Values]] = []
        self.sizes: list[int] = []
        """Runs of each segment."""
        for segment in records.segments:
            path, here = self.paths[segment["path"]], records.runs[segment["path"]]
            self._runs += [(segment, path, run) for run in here]
            self.sizes.append(len(here))

    def only(self, steps: Steps) -> LayerWork:
        """The same layer, with only some of its steps."""
        other = copy(self)
        other.steps = steps
        return other

    def blocks(self) -> Iterator[Block]:
        """All steps, block by block."""
        for start in range(0, len(self.steps), BLOCK):
            yield self._block(self.steps.part(start))

    def _block(self, steps: Steps) -> Block:
        config, memory = self.config, self._memory
        end = np.full(len(steps), memory.end)
        nought, whole = np.zeros_like(end), np.full_like(end, config.word - 1)
        columns = [self._place(steps, *run) for run in self._runs]
        columns.append(np.stack((end, end, nought, whole)))
        first, last, low, high = np.stack(columns, axis=-1).reshape(4, -1)

        # The words of each run or end, and for each word the run that requests it.
        sizes = np.maximum(last - first + 1, 0)
        run = np.repeat(np.arange(len(sizes)), sizes)
        word = np.arange(len(run)) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
        spans = np.where(sizes > 0, last // config.summary - first // config.summary + 1, 0)
        spans = spans.reshape(len(steps), -1)
        # The end has a request of its own only if the last run has none.
        spans[:, -1] = spans[:, -2] == 0
        lonely = int(spans[:, -1].sum())
        begin = np.cumsum(spans) - spans.ravel()
        request = (begin - first // config.summary)[run] + word // config.summary
        is_end = word == memory.end
        request[is_end] = np.cumsum(spans)[run[is_end]] - 1
        kept = np.flatnonzero(memory.flags[word])
        run, word, request, is_end = run[kept], word[kept], request[kept], is_end[kept]
        step, column = np.divmod(run, len(columns))
        identity, exponent, again = self._facts()
        bits, cycles = memory.count(
            word,
            np.where(identity[column] | (word == first[run]), low[run], 0),
            np.where(identity[column] | (word == last[run]), high[run], config.word - 1),
        )
        events = np.where(identity[column], np.minimum(bits, 1), cycles)

        # Falling by several exponents costs null events, but not from one step to the next.
        made = np.flatnonzero(events)
        falls = -np.diff(exponent[column[made]], prepend=0) - 1
        nulls = np.zeros_like(events)
        nulls[made] = np.where(np.roll(is_end[made], 1), 0, np.maximum(falls, 0))
        lanes = np.minimum(config.lanes, self._channels - steps.tile[step] * config.lanes)
        acs = bits * np.where(identity[column], 1, lanes)
        acs *= steps.anew[step] & ~again[column] & ~is_end

        # The end goes with the last word of its request; at exponent 0, with its last event.
        counts, ends = events * self._event_cycles + nulls, np.flatnonzero(is_end)
        joins = np.diff(request, prepend=-1)[ends] == 0
        joining, before = ends[joins], ends[joins] - 1
        free = (bits[before] > 0) & (exponent[column[before]] == 0)
        counts[before] += np.where(free, 0, counts[joining])
        alone = np.ones(len(word), np.bool_)
        alone[joining] = False

        asked = int(spans.sum())
        empty = np.bincount(request[~is_end], minlength=asked) == 0
        per_request = np.bincount(request[alone], minlength=asked)
        by_request = _split(counts[alone].tolist(), per_request.tolist())
        spans[:, -2] += spans[:, -1]
        return Block(
            steps=steps,
            requests=_split(by_request, spans[:, :-1].ravel().tolist()),
            events=int(events[~is_end].sum()),
            nulls=int(nulls.sum()) + len(steps) - int(free.sum()),
            words=len(word) - len(steps),
            ends=len(steps) - len(joining),
            asked=asked,
            empty=int(empty.sum()) - lonely,
            acs=int(acs.sum()),
        )

    def _facts(self) -> tuple[NDArray[np.bool_], Integers, NDArray[np.bool_]]:
        """For each run and the end: whether it is an identity; its exponent; whether it is a
        further limb of an identity's weights.
        """
        facts, seen = [], set[tuple[int, int]]()
        for segment, path, _ in self._runs:
            plane = segment["path"], segment["base"]
            again = path["identity"] and plane in seen
            seen.add(plane)
            facts.append((path["identity"], segment["exponent"], again))
        identity, exponent, again = np.array([*facts, (0, 0, 0)]).T
        return identity > 0, exponent, again > 0

    def _place(self, steps: Steps, segment: Values, path: Values, run: Values) -> Integers:
        """A run in all steps: first and last word, first and last bit; no word if it is clipped
        away.
        """
        word = self.config.word
        base = segment["base"] + steps.t * path["frame_words"]
        top = path["row_init"] + run["row"] + steps.row * path["row_step"]
        top = top + steps.wy * path["row_window"]
        left = path["column_init"] + run["column"] + steps.column * path["column_step"]
        left = left + steps.wx * path["column_window"]
        low, high = np.maximum(left, path["column_low"]), left + run["length_last"]
        high = np.minimum(high, path["column_high"])
        there = (top >= path["row_low"]) & (top <= path["row_high"])
        counts = there & (low <= high)
        if path["identity"]:
            counts = there & (low == left) & (left <= path["column_high"])
            low = left + steps.tile * self.config.lanes
            high = low + path["lanes"] - 1
        first, last = base + top + low // word, base + top + high // word
        return np.stack((first, np.where(counts, last, first - 1), low % word, high % word))


def _below(bits: NDArray[np.bool_]) -> Integers:
    """Number of set bits before each place."""
    return np.concatenate(([0], np.cumsum(bits, dtype=np.int64)))


def _split(values: list[Any], sizes: list[int]) -> list[list[Any]]:
    """Lists of the given sizes, one after the other."""
    parts, start = [], 0
    for size in sizes:
        parts.append(values[start : start + size])
        start += size
    return parts
