# amaranth: UnusedElaboratable=no
"""A model of NeuronArray from `lbq_hw.numeric`, and random layers for it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lbq_hw import numeric
from lbq_hw.config import Profile
from lbq_hw.core.neurons.compact_neurons import CompactNeurons
from lbq_hw.core.neurons.neuron_array import NeuronArray
from lbq_hw.core.neurons.partial_neurons import PartialNeurons
from lbq_hw.core.payload import LayerInfo, PassInfo, StepInfo
from lbq_hw.network.neuron import FLAGS, PARAMETERS, RULES, SUBTRACT, Rule

ACC_BITS, MEMBRANE_BITS, TIMESTEPS, TILES, WORD = 12, 20, 4, 3, 32
LAYERS = {
    "one timestep": {},
    "several timesteps": {"timesteps": 4},
    "static current": {"timesteps": 3, "updates": 3},
    "max-pool": {"timesteps": 2, "positions": 3},
    "max-pool of one timestep": {"positions": 4},
    "max-pool of a static current": {"timesteps": 4, "updates": 4, "positions": 2},
    **{rule.neurons: {"timesteps": 4, "flags": (rule.name,)} for rule in FLAGS},
    **{
        f"{rule.neurons}, of a static current": {
            "timesteps": 3,
            "updates": 3,
            "flags": (rule.name,),
        }
        for rule in FLAGS
    },
    "readout": {"timesteps": 3, "readout": True},
    "readout of a static current": {"timesteps": 2, "updates": 2, "readout": True},
}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The constants of a layer, and its numbers of timesteps and pool positions."""

    capacity: int
    decay: int
    decay_bits: int
    shift: int
    updates: int = 1
    timesteps: int = 1
    positions: int = 1
    readout: bool = False
    flags: tuple[str, ...] = ()

    def info(self, planes: int) -> dict[str, int]:
        """Its `LayerInfo`."""
        names = ("updates", "readout", "capacity", "decay", "shift")
        neurons = {name: int(getattr(self, name)) for name in names}
        flags = {rule.name: int(rule.name in self.flags) for rule in FLAGS}
        return neurons | flags | {"stride": 5, "planes": planes, "granules": 1}


@dataclass(kw_only=True)
class Traffic:
    """Inputs of a NeuronArray and its expected outputs."""

    layer: dict[str, int]
    sums: list[list[int]]
    steps: list[dict]
    planes: list[dict]
    logits: list[list[int]]


def random_params(source: random.Random, lanes: int) -> np.ndarray:
    """Bias, theta, reset and the parameters of the other rules, each of ``TILES * lanes`` channels;
    some thresholds are tiny, some out of reach.
    """
    count = TILES * lanes
    thetas = (1, source.randrange(2, 64), source.randrange(64, 8192), (1 << MEMBRANE_BITS - 1) - 1)
    return np.array(
        [
            [source.randrange(-(1 << 13), 1 << 13) for _ in range(count)],
            [source.choice(thetas) for _ in range(count)],
            [source.randrange(-200, 1 << 13) for _ in range(count)],
            *(
                [source.randrange(-(1 << 14), 0) for _ in range(count)]
                for rule in PARAMETERS
                if rule is not SUBTRACT
            ),
        ]
    )


def random_layer(source: random.Random, sizes: dict, kind: dict) -> Layer:
    return Layer(
        capacity=source.randrange(1, 1 << sizes["planes"]),
        decay=source.randrange((1 << sizes["decay_bits"]) + 1),
        decay_bits=sizes["decay_bits"],
        shift=source.randrange(5),
        **kind,
    )


def random_traffic(
    source: random.Random,
    layer: Layer,
    params: np.ndarray,
    *,
    lanes: int,
    units: int,
    planes: int,
    pixels: int = 10,
) -> Traffic:
    """Steps of some pixels and tiles, in the order of the core's loops, and golden's answers."""
    traffic = Traffic(layer=layer.info(planes), sums=[], steps=[], planes=[], logits=[])
    for _ in range(pixels):
        tile = source.randrange(TILES)
        bias, theta, *others = params[:, tile * lanes : (tile + 1) * lanes]
        values = {rule.name: own for rule, own in zip(PARAMETERS, others, strict=False)}
        best = np.zeros((layer.timesteps, lanes), np.uint8)
        for position in range(layer.positions):
            last_position = position == layer.positions - 1
            v = acc = np.zeros(lanes, np.int64)
            step: dict = {}
            for t in range(layer.timesteps):
                if t % layer.updates == 0:
                    acc = np.array([source.randrange(-2048, 2048) for _ in range(lanes)])
                    write = {"addr": source.randrange(64), "place": source.randrange(2)}
                    write["first"] = source.randrange(2)
                    step = {
                        "group": tile * lanes // units,
                        "first_t": int(t == 0),
                        "last_t": int(t + layer.updates == layer.timesteps),
                        "pool_first": int(position == 0),
                        "pool_last": int(last_position),
                        "write": write,
                    }
                    traffic.sums.append(acc.tolist())
                    traffic.steps.append(step)
                current = bias + (acc << layer.shift)
                if layer.readout:
                    v = v + current
                    if t == layer.timesteps - 1:
                        traffic.logits += v.reshape(-1, units).tolist()
                    continue
                u = numeric.decay(v, layer.decay, layer.decay_bits) + current
                level = numeric.burst_level(u, theta, layer.capacity)
                v = u
                for rule in RULES:
                    if rule.name in values or rule.name in layer.flags:
                        v = rule.apply(v, level, values.get(rule.name))
                best[t] = np.maximum(best[t], level)
                if last_position:
                    bits = [int(best[t, c]) >> k & 1 for k in range(planes) for c in range(lanes)]
                    words = [
                        sum(bit << c for c, bit in enumerate(bits[k * lanes :][:lanes]))
                        for k in range(planes)
                    ]
                    restart = int(t % layer.updates == 0)
                    traffic.planes.append(
                        {"planes": words, "restart": restart, "write": step["write"]}
                    )
    return traffic


def layouts(
    *,
    lanes: int,
    planes: int,
    decay_bits: int,
    partials: bool = False,
    rules: Sequence[Rule] = RULES,
) -> tuple[LayerInfo, StepInfo]:
    layer = (PassInfo if partials else LayerInfo)(
        lanes=lanes,
        planes=planes,
        address_bits=7,
        update_bits=TIMESTEPS.bit_length(),
        decay_bits=decay_bits,
        shift_bits=3,
        flags=[rule.name for rule in rules if not rule.per_channel],
    )
    return layer, StepInfo(lanes=lanes, word=WORD, address_bits=7, group_bits=8)


class _Fed(PartialNeurons):
    """Drives the copies of ``i_sum.valid`` that come from the lanes in a core."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        ports: Any = self
        m.d.comb += ports.i_valids.eq(ports.i_sum.valid.replicate(len(ports.i_valids)))
        return m


def build(
    *,
    lanes: int,
    units: int,
    planes: int,
    decay_bits: int,
    params: np.ndarray | None = None,
    timesteps: int = TIMESTEPS,
    rules: Sequence[Rule] = RULES,
    resets: bool = True,
    partial_words: int = 0,
    profile: Profile = Profile.STANDARD,
) -> NeuronArray:
    layer, step = layouts(
        lanes=lanes, planes=planes, decay_bits=decay_bits, partials=partial_words > 0, rules=rules
    )
    words = [] if params is None else params.T.reshape(-1, len(params) * units).tolist()
    partial: dict[str, Any] = {}
    kind = CompactNeurons if profile is Profile.COMPACT else NeuronArray
    if partial_words:
        kind, partial = _Fed, {"partial_words": partial_words, "partial_bits": ACC_BITS - 1}
    return kind(
        lanes=lanes,
        units=units,
        acc_bits=ACC_BITS,
        membrane_bits=MEMBRANE_BITS,
        timesteps=timesteps,
        tiles=TILES,
        layer=layer,
        step=step,
        rules=rules,
        resets=resets,
        init=words,
        **partial,
    )
