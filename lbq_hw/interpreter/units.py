"""Path registers, lanes and neuron units of the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.network.neuron import RULES, Rule
from lbq_hw.numeric import Integers

Values = dict[str, int]


class PathState:
    """Registers of one path, see `lbq_hw.isa`."""

    def __init__(self, path: Values, runs: Sequence[Values]) -> None:
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
class Lanes:
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

    def end(self, *, rides: bool) -> Integers:
        """The sums of a step, whose end `rides` on its last event if that has exponent 0."""
        down = self.exponent or 0
        self.nulls += max(down, 0 if rides else 1)
        return self.acc << down


class Params:
    """Parameters of all channels: bias, theta and those of rules, each an array by its name."""

    def __init__(self, records: Sequence[Values]) -> None:
        self._arrays = {
            field.name: np.array([record[field.name] for record in records], np.int64)
            for field in isa.PARAM.fields
        }

    def __getitem__(self, name: str) -> Integers:
        return self._arrays[name]


class Neurons:
    """The neuron units of one layer: membranes of one tile of one pixel, maxima of one window."""

    def __init__(self, config: CoreConfig, layer: Values, params: Params) -> None:
        self.config, self.layer, self.params = config, layer, params
        self.v = np.zeros(config.lanes, np.int64)
        self.rules = [rule for rule in RULES if self._follows(rule)]
        self.maxima = np.zeros((layer["time_last"] + 1, config.lanes), np.int64)

    def update(self, acc: Integers, tile: int, t: int, first: bool) -> Integers:
        """One timestep: levels, the largest of the window so far, or the readout's membranes."""
        config, layer, params = self.config, self.layer, self.params
        lanes = config.lanes
        here = slice((layer["param"] + tile) * lanes, (layer["param"] + tile + 1) * lanes)
        theta = params["theta"][here]
        v = self.v if t else np.zeros(lanes, np.int64)
        if not layer["readout"]:
            v = (layer["decay"] * v) >> config.decay_bits
        u = self._wrap(v + params["bias"][here] + (acc << layer["fraction"]))
        if layer["readout"]:
            self.v = u
            return u
        rest, level = u.copy(), np.zeros(lanes, np.int64)
        for plane in reversed(range(config.planes)):
            reached = rest >= theta << plane
            rest = np.where(reached, rest - (theta << plane), rest)
            level |= reached.astype(np.int64) << plane
        level = np.minimum(level, layer["capacity"])
        self.v = u
        for rule in self.rules:
            values = params[rule.name][here] if rule.per_channel else None
            self.v = self._wrap(rule.apply(self.v, level, values))
        self.maxima[t] = level if first else np.maximum(self.maxima[t], level)
        return self.maxima[t]

    def _follows(self, rule: Rule) -> bool:
        """A rule with a number per channel is followed where the core keeps that number."""
        if rule.per_channel:
            return isa.PARAM.slots(self.config)[rule.name].width > 0
        return bool(self.layer[rule.name])

    def _wrap(self, values: Integers) -> Integers:
        half = 1 << (self.config.membrane_bits - 1)
        return (values + half) % (2 * half) - half
