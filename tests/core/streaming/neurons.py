"""Neurons with random parameters, and beats for them with what must come of each."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from core.streaming.layers import Fields, layer_record
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.core.streaming.layouts import Beat
from lbq_hw.network.neuron import FLOOR, SUBTRACT, TO_ZERO
from lbq_hw.numeric import Integers
from lbq_hw.streaming.config import StreamConfig

WORDS = 12
"""Membranes that are used, of `units` channels each."""


@dataclass(frozen=True)
class Given:
    """A beat, and what must come of it: levels, heat, and cycles in which it leaks."""

    beat: Fields
    sums: list[int]
    param: int
    levels: list[int]
    hot: int
    leaks: int


class Neurons:
    """Channels with random parameters, and their membranes."""

    def __init__(self, c: StreamConfig, source: random.Random) -> None:
        self.config, self.source = c, source
        self.v = np.zeros((WORDS, c.units), np.int64)
        self.half = 1 << (c.membrane_bits - 1)
        shape = (c.param_words, c.units)
        self.drawn = drawn = np.random.default_rng(source.randrange(1 << 30))
        self.bias = drawn.integers(-100, 100, shape)
        self.theta = drawn.integers(1, 4 ** drawn.integers(1, 6, shape) + 1)
        self.reset = drawn.integers(0, 2 * self.theta + 1) if c.resets else self.theta
        self.floor = -drawn.integers(0, 4 ** drawn.integers(1, 7, shape))
        # Words of the second half belong to readouts, which have no floor.
        self.floor[c.param_words // 2 :] = -self.half

    def params(self) -> list[Fields]:
        """Writes of all words."""
        c = self.config
        kinds = [self.bias, self.theta]
        kinds += [self.reset] * c.resets + [self.floor] * c.floors
        words = np.stack(kinds, axis=-1).reshape(c.param_words, -1)
        return [
            {"addr": addr, "data": packed(word, c.membrane_bits), "en": 1}
            for addr, word in enumerate(words)
        ]

    def given(self, layer: Fields, word: int) -> Given:
        """A beat for a word of membranes, with sums that keep them within their width."""
        c, source = self.config, self.source
        param = source.randrange(c.param_words // 2) + layer["readout"] * (c.param_words // 2)
        beat = random_beat(c, source) | {"membrane": word, "valid": 1}
        v, leaks = self.v[word], 1
        if layer["leaks"]:
            beat["owed"] = source.choice((1, 2, source.randrange(1, 1 << c.stamp_bits)))
            v, leaks = self._leaked(v, layer["decay"], beat["owed"])
        rest, theta, capacity = v + self.bias[param], self.theta[param], layer["capacity"]
        shift = layer["fraction"] + c.fraction_low
        while True:
            sums = self._sums(rest, theta, capacity, shift)
            u = rest + (sums << shift)
            s = numeric.burst_level(u, theta, capacity)
            after = u if layer["readout"] else self._after(layer, u, s, param)
            if fits(u, self.half) and fits(after, self.half):
                break
        if layer["readout"]:
            s = s * 0
        self.v[word] = after
        hot = not layer["readout"] and bool((after >= theta).any())
        return Given(beat, sums.tolist(), param, s.tolist(), int(hot), leaks)

    def _sums(self, rest: Integers, theta: Integers, capacity: int, shift: int) -> Integers:
        """Any, or such that `rest` and the sum just about reach a multiple of the threshold."""
        limit, count = 1 << (self.config.acc_bits - 1), len(rest)
        near = (self.drawn.integers(0, capacity + 2, count) * theta - rest) >> shift
        aims = (self.drawn.random(count) < 0.5) & (near >= -limit) & (near < limit)
        return np.where(aims, near, self.drawn.integers(-limit, limit, count))

    def _after(self, layer: Fields, u: Integers, s: NDArray[np.uint8], param: int) -> Integers:
        reset = self.reset[param]
        v = TO_ZERO.apply(u, s, None) if layer["to_zero"] else SUBTRACT.apply(u, s, reset)
        return FLOOR.apply(v, s, self.floor[param]) if self.config.floors else v

    def _leaked(self, v: Integers, decay: int, owed: int) -> tuple[Integers, int]:
        """Membranes after what is owed, and the cycles until nothing changes any more."""
        for cycles in range(1, owed + 1):
            before, v = v, numeric.decay(v, decay, self.config.decay_bits)
            if np.array_equal(before, v):
                return v, cycles
        return v, owed


def packed(values: Integers, bits: int) -> int:
    return sum((int(v) & ((1 << bits) - 1)) << bits * i for i, v in enumerate(values))


def fits(values: Integers, half: int) -> bool:
    return bool((values >= -half).all() and (values < half).all())


def random_beat(c: StreamConfig, source: random.Random) -> Fields:
    """One without a group."""
    beat = {name: source.getrandbits(field.width) for name, field in Beat(c)}
    return beat | {"valid": 0}


def random_layers(c: StreamConfig, source: random.Random) -> list[Fields]:
    """A readout, which leaves any membranes; then neurons of every kind, and a readout again."""
    kinds = [{}, {"to_zero": c.zero_resets}] * 2
    kinds += [kind | {"leaks": 1} for kind in kinds if c.leaks]
    source.shuffle(kinds)
    return [
        layer_record(
            c,
            capacity=source.randrange(1, 1 << c.planes),
            fraction=source.randrange(c.fraction_high - c.fraction_low + 1),
            decay=source.randrange((1 << c.decay_bits) + 1) if kind.get("leaks") else 0,
            **kind,
        )
        for kind in ({"readout": 1}, *kinds, {"readout": 1})
    ]
