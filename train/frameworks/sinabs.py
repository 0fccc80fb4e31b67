"""sinabs' `IAFSqueeze` and `LIFSqueeze` with `SingleSpike`, exactly.

    v[t] = v[t-1] + x[t]                                        IAF
    v[t] = a v[t-1] + (1 - a) x[t], or a v[t-1] + x[t]          LIF, a = exp(-1 / tau_mem)
    s[t] = v[t] >= spike_threshold
    v[t] = v[t] - spike_threshold * s[t], or 0 where s[t]       MembraneSubtract, MembraneReset
    v[t] = max(v[t], min_v_mem)

A factor on the input is folded into the threshold and the floor, which are divided by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from lbq_hw.train.frameworks.rules import is_own, per_channel, shifted, uniform
from lbq_hw.train.graph import RefusalError
from lbq_hw.train.neurons import Spiking

_KINDS = ("IAFSqueeze", "LIFSqueeze")


def knows(module: Any) -> bool:
    """Whether this is a neuron of sinabs."""
    return any(
        kind.__name__ == "StatefulLayer" and kind.__module__.startswith("sinabs.")
        for kind in type(module).__mro__
    )


@contextmanager
def at_rest(module: Any) -> Iterator[None]:
    """Within it, a neuron has no state and takes one timestep; then its own state returns."""
    states = dict(module.named_buffers())
    shape = module.batch_size, module.num_timesteps
    for name, state in states.items():
        setattr(module, name, torch.zeros(0, device=state.device))
    module.batch_size, module.num_timesteps = -1, 1
    yield
    module.batch_size, module.num_timesteps = shape
    for name, state in states.items():
        setattr(module, name, state)


def read(module: Any, axes: int) -> Spiking:
    """The equal neuron of this project; its membrane has `axes` axes besides the batch.
    RefusalError if there is no exact form.
    """
    name = type(module).__name__
    if name not in _KINDS or not is_own(module, "sinabs."):
        raise RefusalError(f"sinabs' {name} has no integer form", f"use {' or '.join(_KINDS)}")
    if module.tau_syn_calculated is not None:
        raise RefusalError("its synapse has dynamics", "build it with tau_syn=None")
    spikes = getattr(module.spike_fn, "__name__", type(module.spike_fn).__name__)
    if spikes != "SingleSpike":
        raise RefusalError(
            f"its spike_fn is {spikes}, which subtracts once per spike",
            "build it with spike_fn=SingleSpike",
        )
    beta = uniform(module.alpha_mem_calculated, "tau_mem", "use one time constant per layer")
    gain = 1.0 - beta if module.norm_input else 1.0
    floor = None
    if module.min_v_mem is not None:
        floor = _below(per_channel(module.min_v_mem, "min_v_mem", axes), gain)
    return Spiking(
        threshold=shifted(per_channel(module.spike_threshold, "threshold", axes), 0.0, gain),
        beta=beta,
        to_zero=_resets_to_zero(module.reset_fn),
        floor=floor,
    )


def _resets_to_zero(reset: Any) -> bool:
    kind = type(reset).__name__
    if kind == "MembraneReset" and reset.reset_value == 0.0:
        return True
    if kind == "MembraneSubtract" and reset.subtract_value is None:
        return False
    raise RefusalError(f"its reset_fn is {reset}", "use MembraneSubtract() or MembraneReset()")


def _below(floor: float | list[float], gain: float) -> float | list[float]:
    """A floor in units of the current; at most 0, because membranes start at 0."""
    values = floor if isinstance(floor, list) else [floor]
    if max(values) > 0:
        raise RefusalError("its min_v_mem is above 0", "train it with a min_v_mem of at most 0")
    moved = [value / gain for value in values]
    return moved if isinstance(floor, list) else moved[0]
