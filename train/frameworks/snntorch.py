"""snnTorch's `Leaky`, exactly.

    mem[t] = beta * mem[t-1] + I[t] - threshold * spk[t-1]      reset_mechanism="subtract"
    mem[t] = beta * (1 - spk[t-1]) * mem[t-1] + I[t]            reset_mechanism="zero"
    spk[t] = mem[t] > threshold

The subtraction comes one timestep late, after the leak. With ``reset_delay=False`` it comes at
once, but snnTorch then decides differently on spikes of a membrane that stays above its threshold,
and this has no form here. A reset to zero is the same with and without the delay.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from lbq_hw.train.frameworks.rules import is_own, per_channel, uniform
from lbq_hw.train.graph import RefusalError
from lbq_hw.train.neurons import Spiking

_KINDS = {
    "Synaptic": "its synapse has dynamics",
    "Alpha": "its synapses have dynamics",
    "Lapicque": "its leak is given by a resistance and a capacitance",
    "RLeaky": "it is recurrent",
    "RSynaptic": "it is recurrent",
}


def knows(module: Any) -> bool:
    """Whether this is a neuron of snnTorch."""
    return any(
        kind.__name__ == "SpikingNeuron" and kind.__module__.startswith("snntorch.")
        for kind in type(module).__mro__
    )


@contextmanager
def at_rest(module: Any) -> Iterator[None]:
    """Within it, a neuron has no membrane; then its own membrane returns."""
    membrane = getattr(module, "mem", None)
    if membrane is not None:
        module.mem = torch.zeros(0, device=membrane.device)
    yield
    if membrane is not None:
        module.mem = membrane


def read(module: Any, axes: int) -> Spiking:
    """The equal neuron of this project; its membrane has `axes` axes besides the batch.
    RefusalError if there is no exact form.
    """
    name = type(module).__name__
    if name != "Leaky" or not is_own(module, "snntorch."):
        raise RefusalError(
            _KINDS.get(name, f"snnTorch's {name} has no integer form"), "use snntorch.Leaky"
        )
    if not module.init_hidden:
        raise RefusalError(
            "its membrane is an argument", "build it with init_hidden=True, and call one timestep"
        )
    for flag, mend in (("inhibition", "inhibition=False"), ("state_quant", "state_quant=False")):
        if getattr(module, flag):
            raise RefusalError(f"it has {flag}", f"build it with {mend}")
    if uniform(module.graded_spikes_factor, "graded_spikes_factor", "use one") != 1.0:
        raise RefusalError("its spikes are graded", "use graded_spikes_factor=1.0")
    beta = uniform(module.beta, "beta", "learn one beta per layer")
    reset = {0: "subtract", 1: "zero", 2: "none"}[int(module.reset_mechanism_val)]
    beta = min(max(beta, 0.0), 1.0)
    if reset == "subtract" and not module.reset_delay:
        raise RefusalError(
            "it subtracts without a delay, and snnTorch then decides differently on spikes of a "
            "membrane that stays above its threshold",
            'use reset_delay=True, or reset_mechanism="zero"',
        )
    if reset == "subtract" and beta == 0.0:
        raise RefusalError(
            "it subtracts from a membrane that has leaked away", 'use reset_mechanism="zero"'
        )
    return Spiking(
        threshold=per_channel(module.threshold, "threshold", axes),
        beta=beta,
        alpha=0.0 if reset == "none" else 1.0,
        to_zero=reset == "zero",
        strict=True,
        late=reset == "subtract",
    )
