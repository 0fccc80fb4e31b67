"""Planes, partial sums and logits of the interpreter, and the loops of one layer or pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lbq_hw.config import CoreConfig
from lbq_hw.interpreter.units import Lanes, Neurons, Params, PathState, Values
from lbq_hw.isa.contents import LayerRecords
from lbq_hw.numeric import Integers


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work of one layer: `steps`; `events` that add a weight row; `nulls` that add nothing."""

    name: str
    steps: int
    events: int
    nulls: int

    @property
    def lane_cycles(self) -> int:
        return self.events + self.nulls

    def __add__(self, other: Work) -> Work:
        """Two passes of one layer."""
        return Work(
            name=self.name,
            steps=self.steps + other.steps,
            events=self.events + other.events,
            nulls=self.nulls + other.nulls,
        )


class Machine:
    """The memories that a running program writes; all except the logits start with noise."""

    def __init__(self, config: CoreConfig, random: np.random.Generator) -> None:
        self.config = config
        self.planes = random.random((config.plane_words, config.word)) < 0.5
        self.flags = random.random(config.plane_words) < 0.5
        self.partial = random.integers(-99, 99, (config.partial_words, config.units))
        self.logits = np.zeros(config.logits, np.int64)
        self.logit = 0

    def layer(self, name: str, records: LayerRecords, weights: Integers, params: Params) -> Work:
        """Execute one layer or pass with the contents of the weight and parameter memories."""
        layer, segments, self.weights = records.layer, records.segments, weights
        states = [PathState(*pair) for pair in zip(records.paths, records.runs, strict=True)]
        _check_exponents(segments, layer["segment_first"])
        times = 1 if layer["static"] else layer["time_last"] + 1
        lanes = Lanes(self.config.acc_bits, self.config.lanes, times)
        neurons = Neurons(self.config, layer, params)
        steps = 0
        for row, column, tile, first, last in self._positions(layer, states):
            lanes.start()
            rides = np.zeros(times, np.bool_)
            for segment in segments:
                rides = self._scan(segment, states[segment["path"]], tile, lanes)
            for t, sums in enumerate(lanes.end(rides)):
                acc = self._partial(layer, sums, steps)
                steps += 1
                updates = range(layer["time_last"] + 1) if layer["static"] else (t,)
                for time in () if layer["partial_out"] else updates:
                    out = neurons.update(acc, tile, time, first)
                    if layer["readout"]:
                        if time == layer["time_last"]:
                            self.logits[self.logit : self.logit + len(out)] = out
                            self.logit += len(out)
                    elif last:
                        self._write(layer, out, time, row, column, tile)
        return Work(name=name, steps=steps, events=lanes.events, nulls=lanes.nulls)

    def _partial(self, layer: Values, acc: Integers, step: int) -> Integers:
        """Add the partial sums of the previous pass, and store the result for the next."""
        config = self.config
        if not (layer["partial_in"] or layer["partial_out"]):
            return acc
        if (step + 1) * config.groups > config.partial_words:
            raise ValueError(
                f"a pass must have at most {config.partial_words // config.groups} steps, since "
                f"it has partial sums"
            )
        words = self.partial[step * config.groups : (step + 1) * config.groups]
        if layer["partial_in"]:
            acc = acc + words.reshape(-1)
            _check_width(acc, config.acc_bits, "an accumulator")
        if layer["partial_out"]:
            _check_width(acc, config.partial_bits, "a partial sum")
            words[:] = acc.reshape(words.shape)
        return acc

    def _positions(
        self, layer: Values, states: list[PathState]
    ) -> Iterator[tuple[int, int, int, bool, bool]]:
        """Row, column, tile of each position; whether it is its window's first and last."""

        def advance(kind: str) -> None:
            for state in states:
                state.advance(kind)

        y0 = layer["window_row_init"]
        for row in range(layer["rows_last"] + 1):
            if row:
                advance("row")
                y0 += layer["window_row_step"]
            x0 = layer["window_column_init"]
            for column in range(layer["columns_last"] + 1):
                if column:
                    advance("column")
                    x0 += layer["window_column_step"]
                for tile in range(layer["tiles_last"] + 1):
                    if tile:
                        advance("tile")
                    for wy in range(layer["window_rows_last"] + 1):
                        if wy:
                            advance("window row")
                        y = y0 + wy
                        for wx in range(layer["window_columns_last"] + 1):
                            if wx:
                                advance("window column")
                            x = x0 + wx
                            bottom, right = layer["conv_rows_last"], layer["conv_columns_last"]
                            if not (0 <= y <= bottom and 0 <= x <= right):
                                continue
                            first = (not wy or not y) and (not wx or not x)
                            last = (wy == layer["window_rows_last"] or y == bottom) and (
                                wx == layer["window_columns_last"] or x == right
                            )
                            yield row, column, tile, first, last

    def _scan(
        self, segment: Values, state: PathState, tile: int, lanes: Lanes
    ) -> NDArray[np.bool_]:
        """The events of a segment at every timestep, and whether the last of them can carry the end
        of the step: this is so if, in the last span of the last run, the last word with a flag has
        an event.
        """
        path, exponent = state.path, segment["exponent"]
        base = segment["base"] + np.arange(lanes.steps) * path["frame_words"]
        rides = np.zeros(lanes.steps, np.bool_)
        for run in state.runs:
            rides = np.zeros(lanes.steps, np.bool_)
            top, left = state.row + run["row"], state.col + run["column"]
            if path["identity"]:
                if not (
                    path["row_low"] <= top <= path["row_high"]
                    and path["column_low"] <= left <= path["column_high"]
                ):
                    continue
                mask = self._mask(base + top, left + tile * self.config.lanes, path["lanes"])
                rides = np.asarray(mask.any(axis=1))
                weights = self.weights[segment["weight"] + state.tile]
                lanes.add(exponent, np.flatnonzero(rides), mask[rides] * weights)
                continue
            low = max(left, path["column_low"])
            high = min(left + run["length_last"], path["column_high"])
            if not path["row_low"] <= top <= path["row_high"] or low > high:
                continue
            steps, words, ones, rides = self._bits(base + top, low, high)
            rows = segment["weight"] + state.tile + run["weight"] - left + ones
            rows += words * self.config.word
            rows &= (1 << self.config.weight_address_bits) - 1
            lanes.add(exponent, steps, self.weights[rows])
        return rides

    def _mask(self, row: Integers, left: int, lanes: int) -> Integers:
        """The lane masks of an identity whose rows begin at the words `row`."""
        at, bit = divmod(left, self.config.word)
        mask = np.zeros((len(row), self.config.lanes), np.int64)
        mask[:, :lanes] = self.planes[row + at, bit : bit + lanes] & self.flags[row + at, None]
        return mask

    def _bits(
        self, row: Integers, low: int, high: int
    ) -> tuple[Integers, Integers, Integers, NDArray[np.bool_]]:
        """The set bits from `low` to `high` of rows that begin at the words `row`, one row per
        timestep: the timestep, word and place of each; and where the last word with a flag of the
        last span has one.
        """
        word, summary = self.config.word, self.config.summary
        begin, end = low // word, high // word + 1
        here = row[:, None] + np.arange(begin, end)
        flags, places = self.flags[here], np.arange(word)
        keep = np.ones((end - begin, word), np.bool_)
        keep[0] &= places >= low % word
        keep[-1] &= places <= high % word
        bits = self.planes[here] & flags[..., None] & keep
        steps, words, ones = np.nonzero(bits)
        spans = here // summary
        flagged = flags & (spans == spans[:, -1:])
        final = end - begin - 1 - np.argmax(flagged[:, ::-1], axis=1)
        rides = flagged.any(axis=1) & bits[np.arange(len(row)), final].any(axis=1)
        return steps, words + begin, ones, rides

    def _write(
        self, layer: Values, levels: Integers, t: int, row: int, column: int, tile: int
    ) -> None:
        word, bit = divmod(column * layer["out_pitch"] + tile * self.config.lanes, self.config.word)
        word += layer["out_base"] + t * layer["out_frame"] + row * layer["out_row"]
        size = 1 << layer["out_chunk"]
        for plane in range(layer["planes_last"] + 1):
            chunk = (levels[:size] >> plane & 1).astype(np.bool_)
            self.planes[word, bit : bit + size] = chunk
            self.flags[word] = chunk.any() or bool(bit and self.flags[word])
            word += layer["out_plane"]


def _check_exponents(segments: Sequence[Values], first: int) -> None:
    """Refuse rising exponents, as the core does: sums can be doubled, but not halved."""
    for number, (before, segment) in enumerate(pairwise(segments), first + 1):
        if segment["exponent"] > before["exponent"]:
            raise ValueError(
                f"segment {number}: exponent must be at most {before['exponent']}, that of the "
                f"segment before it in its layer, not {segment['exponent']}"
            )


def _check_width(values: Integers, bits: int, what: str) -> None:
    limit = 1 << (bits - 1)
    if values.min() < -limit or values.max() >= limit:
        raise OverflowError(f"{what} overflows its {bits} bits")
