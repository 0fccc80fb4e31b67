"""Executes a compiled program in numpy as the core does, event by event: tests the compiler.

Works from the encoded tables, weight rows and plane words alone. Lanes accumulate in the order of
the events and must never leave their width, else `OverflowError`; membranes wrap at theirs, as in
the core. Plane memory starts full of noise: what a program has not written, it must not need.
Segments whose exponents rise within a layer are refused, as in the core: `ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lbq_hw import isa
from lbq_hw.compiler.program import Program
from lbq_hw.network import INPUT
from lbq_hw.numeric import Integers

Values = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one layer did: `steps`; `events` that add a weight row; `nulls` that add nothing."""

    name: str
    steps: int
    events: int
    nulls: int

    @property
    def lane_cycles(self) -> int:
        return self.events + self.nulls


@dataclass(frozen=True, kw_only=True, eq=False)
class Execution:
    """One image: `logits` of the classes; `levels` by layer, ``(T, C, H, W)``; `work` by layer."""

    logits: Integers
    levels: dict[str, NDArray[np.uint8]]
    work: tuple[Work, ...]


def run(program: Program, raw: NDArray[np.uint8], *, seed: int = 0) -> Execution:
    """Execute one raw image ``(C, H, W)``, or its frames ``(T, C, H, W)``."""
    return _Machine(program, seed).run(raw)


class _PathState:
    """Registers of one path, see `lbq_hw.isa`."""

    def __init__(self, path: Values, runs: list[Values]) -> None:
        self.path, self.runs = path, runs
        self.row = self.row0 = path["row_init"]
        self.col = self.col0 = path["column_init"]
        self.frame = self.tile = 0

    def advance(self, kind: str) -> None:
        path = self.path
        if kind == "time":
            self.frame += path["frame_words"]
            return
        self.frame = 0
        if kind == "window column":
            self.col += path["column_window"]
            return
        if kind == "window row":
            self.row += path["row_window"]
            self.col = self.col0
            return
        self.tile = self.tile + path["tile_rows"] if kind == "tile" else 0
        if kind == "row":
            self.row0 += path["row_step"]
            self.col0 = path["column_init"]
        elif kind == "column":
            self.col0 += path["column_step"]
        self.row, self.col = self.row0, self.col0


@dataclass
class _Lanes:
    """P accumulators and the exponent they have reached; counts what they are given."""

    width: int
    lanes: int
    events: int = 0
    nulls: int = 0

    def start(self) -> None:
        self.acc = np.zeros(self.lanes, np.int64)
        self.exponent: int | None = None

    def add(self, exponent: int, rows: Integers) -> None:
        """Events of one exponent, each with the weights that it adds to each lane."""
        if not len(rows):
            return
        if self.exponent is not None and exponent < self.exponent:
            down = self.exponent - exponent
            self.nulls += down - 1
            self.acc = self.acc << down
        self.exponent = exponent
        sums = self.acc + np.cumsum(rows, axis=0)
        limit = 1 << (self.width - 1)
        if sums.min() < -limit or sums.max() >= limit:
            raise OverflowError(f"an accumulator leaves its {self.width} bits")
        self.acc = sums[-1]
        self.events += len(rows)

    def end(self) -> Integers:
        down = self.exponent or 0
        self.nulls += max(down, 1)
        return self.acc << down


class _Machine:
    def __init__(self, program: Program, seed: int) -> None:
        config = program.config
        self.program, self.config = program, config
        self.paths, self.runs = program.table("paths"), program.table("runs")
        self.segments = program.table("segments")
        random = np.random.default_rng(seed)
        self.planes = random.random((config.plane_words, config.word)) < 0.5
        self.flags = random.random(config.plane_words) < 0.5
        self.logits = np.zeros(config.logits, np.int64)
        self.logit = 0
        params = [isa.PARAM.decode(config, word) for word in program.params]
        self.bias, self.theta, self.reset = (
            np.array([p[name] for p in params], np.int64) for name in ("bias", "theta", "reset")
        )

    def run(self, raw: NDArray[np.uint8]) -> Execution:
        program = self.program
        source = program.tensors[INPUT]
        bits = program.input_bits(raw)
        self.planes[source.base : source.end] = bits
        self.flags[source.base : source.end] = bits.any(axis=1)
        levels, work = {}, []
        for info, layer in zip(program.info, program.table("layers"), strict=True):
            work.append(self._layer(info.name, layer))
            if not layer["readout"]:
                tensor = program.tensors[info.name]
                levels[info.name] = tensor.unpack(self.planes[tensor.base : tensor.end])
            if layer["last"]:
                break
        return Execution(logits=program.logits(self.logits), levels=levels, work=tuple(work))

    def _layer(self, name: str, layer: Values) -> Work:
        states = []
        for path in self.paths[layer["path_first"] : layer["path_last"] + 1]:
            states.append(_PathState(path, self.runs[path["run_first"] : path["run_last"] + 1]))
        segments = self.segments[layer["segment_first"] : layer["segment_last"] + 1]
        _check_exponents(segments, layer["segment_first"])
        lanes = _Lanes(self.config.acc_bits, self.config.lanes)
        neurons = _Neurons(self, layer)
        times = 1 if layer["static"] else layer["time_last"] + 1
        steps = 0
        for row, column, tile, first, last in self._positions(layer, states):
            for t in range(times):
                if t:
                    for state in states:
                        state.advance("time")
                lanes.start()
                for segment in segments:
                    self._scan(segment, states[segment["path"]], tile, lanes)
                acc = lanes.end()
                steps += 1
                updates = range(layer["time_last"] + 1) if layer["static"] else (t,)
                for time in updates:
                    out = neurons.update(acc, tile, time, first)
                    if layer["readout"]:
                        if time == layer["time_last"]:
                            self.logits[self.logit : self.logit + len(out)] = out
                            self.logit += len(out)
                    elif last:
                        self._write(layer, out, time, row, column, tile)
        return Work(name=name, steps=steps, events=lanes.events, nulls=lanes.nulls)

    def _positions(
        self, layer: Values, states: list[_PathState]
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

    def _scan(self, segment: Values, state: _PathState, tile: int, lanes: _Lanes) -> None:
        path, word = state.path, self.config.word
        weights, base = self.program.weights, segment["base"] + state.frame
        for run in state.runs:
            top, left = state.row + run["row"], state.col + run["column"]
            if path["identity"]:
                if not (
                    path["row_low"] <= top <= path["row_high"]
                    and path["column_low"] <= left <= path["column_high"]
                ):
                    continue
                at, bit = divmod(left + tile * self.config.lanes, word)
                mask = np.zeros(self.config.lanes, np.int64)
                if self.flags[base + top + at]:
                    mask[: path["lanes"]] = self.planes[base + top + at, bit : bit + path["lanes"]]
                if mask.any():
                    lanes.add(
                        segment["exponent"], (mask * weights[segment["weight"] + state.tile])[None]
                    )
                continue
            first = max(top, path["row_low"])
            last = min(top + run["rows_last"], path["row_high"])
            low = max(left, path["column_low"])
            high = min(left + run["length_last"], path["column_high"])
            if first > last or low > high:
                continue
            begin, end = base + first + low // word, base + last + high // word + 1
            bits = self.planes[begin:end] & self.flags[begin:end, None]
            places = np.arange(word)
            keep = np.ones(bits.shape, np.bool_)
            every = slice(None) if path["stacked"] else 0
            keep[every] &= places >= low % word
            every = slice(None) if path["stacked"] else -1
            keep[every] &= places <= high % word
            words, ones = np.nonzero(bits & keep)
            rows = segment["weight"] + state.tile + run["weight"] - left + ones
            rows += (words + (begin - base - top)) << isa.increment(self.config, path)
            rows &= (1 << self.config.weight_address_bits) - 1
            lanes.add(segment["exponent"], weights[rows])

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


def _check_exponents(segments: list[Values], first: int) -> None:
    """Refuse what the core refuses: sums are doubled on the way down and cannot be halved."""
    for number, (before, segment) in enumerate(pairwise(segments), first + 1):
        if segment["exponent"] > before["exponent"]:
            raise ValueError(
                f"segment {number}: exponent must be at most {before['exponent']}, that of the "
                f"segment before it in its layer, not {segment['exponent']}"
            )


class _Neurons:
    """The neuron units of one layer: membranes of one tile of one pixel, maxima of one window."""

    def __init__(self, machine: _Machine, layer: Values) -> None:
        self.machine, self.layer = machine, layer
        self.v = np.zeros(machine.config.lanes, np.int64)
        self.maxima = np.zeros((layer["time_last"] + 1, machine.config.lanes), np.int64)

    def update(self, acc: Integers, tile: int, t: int, first: bool) -> Integers:
        """One timestep: levels, the largest of the window so far, or the readout's membranes."""
        machine, layer, lanes = self.machine, self.layer, self.machine.config.lanes
        here = slice((layer["param"] + tile) * lanes, (layer["param"] + tile + 1) * lanes)
        v = self.v if t else np.zeros(lanes, np.int64)
        if not layer["readout"]:
            v = (layer["decay"] * v) >> machine.config.decay_bits
        u = self._wrap(v + machine.bias[here] + (acc << layer["fraction"]))
        if layer["readout"]:
            self.v = u
            return u
        rest, level = u.copy(), np.zeros(lanes, np.int64)
        for plane in reversed(range(machine.config.planes)):
            reached = rest >= machine.theta[here] << plane
            rest = np.where(reached, rest - (machine.theta[here] << plane), rest)
            level |= reached.astype(np.int64) << plane
        level = np.minimum(level, layer["capacity"])
        self.v = self._wrap(u - np.where(level > 0, machine.reset[here], 0))
        self.maxima[t] = level if first else np.maximum(self.maxima[t], level)
        return self.maxima[t]

    def _wrap(self, values: Integers) -> Integers:
        half = 1 << (self.machine.config.membrane_bits - 1)
        return (values + half) % (2 * half) - half
