"""The golden model, one timestep at a time: it keeps its state, and there is no last timestep.

After as many steps as the network has timesteps, levels and logits equal `golden.run` on the same
frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.golden import exact
from lbq_hw.golden.exact import Array, LayerPlan, Levels
from lbq_hw.network import INPUT, Network
from lbq_hw.numeric import Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """The result of one timestep: the output ``(C, H, W)`` of every layer of neurons, after its
    max-pool, and the logits so far.
    """

    levels: Mapping[str, NDArray[np.uint8]]
    logits: Integers


class Stream:
    """A network that keeps its membranes from one step to the next."""

    def __init__(self, network: Network) -> None:
        if network.input.static:
            raise ValueError(
                f"network {network.name!r} has a static input: a stream needs one frame per step"
            )
        self.network = network
        self._plans = [_endless(plan) for plan in exact.plan(network)]
        self.reset()

    def reset(self) -> None:
        """Clear all membranes and logits."""
        self.steps = 0
        self._v: dict[str, Array] = {}

    def step(self, frame: NDArray[np.uint8]) -> Step:
        """Execute one raw frame ``(C, H, W)``."""
        frames = self.network.input.quantize(frame[None, None])
        tensors: dict[str, Levels] = {INPUT: np.ascontiguousarray(np.moveaxis(frames, 2, -1))}
        for plan in self._plans:
            acc = plan.accumulate(tensors, slice(0, 1))
            u = plan.currents(acc)[0] + self._decayed(plan)
            self._v[plan.layer.name] = u
            if plan.layer.neuron is not None:
                tensors[plan.layer.name] = self._fire(plan, u).reshape(acc.shape)
                if plan.layer.pool is not None:
                    pooled = exact.max_pool(tensors[plan.layer.name], plan.layer.pool)
                    tensors[plan.layer.name] = pooled
        self.steps += 1
        readout = self.network.layers[-1]
        channels, height, width = readout.shape
        logits = self._v[readout.name].reshape(height, width, channels)
        return Step(
            levels={k: np.moveaxis(v[0, 0], -1, 0) for k, v in tensors.items() if k != INPUT},
            logits=np.moveaxis(logits, -1, 0).reshape(-1),
        )

    def _decayed(self, plan: LayerPlan) -> Array | int:
        v, neuron = self._v.get(plan.layer.name), plan.layer.neuron
        if v is None:
            return 0
        return v if neuron is None else numeric.decay(v, neuron.decay, neuron.decay_bits)

    def _fire(self, plan: LayerPlan, u: Array) -> Levels:
        neuron = plan.layer.neuron
        assert neuron is not None
        s = numeric.burst_level(u, plan.values["theta"], neuron.capacity)
        for rule in neuron.rules:
            u = rule.apply(u, s, plan.values.get(rule.name))
        self._v[plan.layer.name] = u
        return s


def _endless(plan: LayerPlan) -> LayerPlan:
    """A plan for any number of timesteps: 64 bits, even if fewer suffice for the network's own."""
    wide = np.dtype(np.int64)
    paths = tuple(
        replace(path, matrix=path.matrix.astype(wide)) if path.path.is_identity else path
        for path in plan.paths
    )
    vectors = plan.layer.neuron.vectors if plan.layer.neuron else {}
    width = plan.layer.shape[2]
    return replace(
        plan,
        dtype=wide,
        paths=paths,
        bias=np.tile(plan.layer.bias.astype(wide), width),
        values={name: np.tile(vector, width) for name, vector in vectors.items()},
    )
