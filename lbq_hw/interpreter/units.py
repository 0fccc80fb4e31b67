"""Path registers, lanes and neuron units of the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.network.neuron import RULES, Rule
from lbq_hw.numeric import Integers

Values = dict[str, int]


class PathState:
    """Registers of one path, see `lbq_hw.isa`; without `frame`, since all timesteps are scanned
    at once.
    """

    def __init__(self, path: Values, runs: Sequence[Values]) -> None:
        self.path, self.runs = path, runs
        self.row = self.row0 = path["row_init"]
        self.col = self.col0 = path["column_init"]
        self.tile = 0

    def advance(self, kind: str) -> None:
        path = self.path
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


class Lanes:
    """P accumulators for each of some independent `steps`, with their current exponent; counts
    events.
    """

    def __init__(self, width: int, lanes: int, steps: int) -> None:
        self.width, self.lanes, self.steps = width, lanes, steps
        self.events = self.nulls = 0

    def start(self) -> None:
        self._acc = np.zeros((self.steps, self.lanes), np.int64)
        self._exponents = np.full(self.steps, -1)  # -1: no event so far

    def add(self, exponent: int, steps: Integers, rows: Integers) -> None:
        """Add events of one exponent, in the order of their `steps`, each with its weights for all
        lanes.
        """
        if not len(rows):
            return
        here, starts, counts = np.unique(steps, return_index=True, return_counts=True)
        down = np.maximum(self._exponents[here] - exponent, 0)
        self.nulls += int(np.maximum(down - 1, 0).sum())
        self._exponents[here] = exponent
        # Running sums over all events; the sums of the earlier steps are subtracted again.
        sums = np.cumsum(rows, axis=0)
        before = (self._acc[here] << down[:, None]) - sums[starts] + rows[starts]
        sums += np.repeat(before, counts, axis=0)
        limit = 1 << (self.width - 1)
        if sums.min() < -limit or sums.max() >= limit:
            raise OverflowError(f"an accumulator overflows its {self.width} bits")
        self._acc[here] = sums[starts + counts - 1]
        self.events += len(rows)

    def end(self, rides: NDArray[np.bool_]) -> Integers:
        """The sums of the steps; `rides`: the last event carries the end of the step, as it does at
        exponent 0.
        """
        down = np.maximum(self._exponents, 0)
        self.nulls += int(np.maximum(down, ~rides).sum())
        return self._acc << down[:, None]


class Params:
    """Parameters of all channels (bias, theta, parameters of rules): an array per name."""

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
        """A rule with a number per channel is followed if the core stores that number."""
        if rule.per_channel:
            return isa.PARAM.slots(self.config)[rule.name].width > 0
        return bool(self.layer[rule.name])

    def _wrap(self, values: Integers) -> Integers:
        half = 1 << (self.config.membrane_bits - 1)
        return (values + half) % (2 * half) - half
