"""The surrogates of the ablation: d out / dU over U / gamma, computed by the neurons themselves."""

from __future__ import annotations

from typing import Any

import torch

from lbq_hw.train.neurons import LBQ

FIGURE = "surrogates.svg"
CAPACITY = 5


def facts() -> dict[str, Any]:
    """Slopes by name, at U from below 0 to above the highest level, in steps."""
    places = torch.arange(-1.5, CAPACITY + 1.51, 0.025, dtype=torch.float64)
    neurons = {
        "box on [1, N]": LBQ(gamma0=1.0, surrogate="box"),
        "box on [0, N]": LBQ(gamma0=1.0, surrogate="box", low=0.0),
        "ReLSG-ET, strength 0.5": LBQ(gamma0=1.0),
        "ReLSG-ET, strength 0.1": LBQ(gamma0=1.0, eta0=-2.1972246),
    }
    found: dict[str, Any] = {"u": [round(x, 3) for x in places.tolist()]}
    for name, neuron in neurons.items():
        current = places.clone().requires_grad_()
        neuron.double()(current[None]).sum().backward()
        assert current.grad is not None
        found[name] = [round(x, 3) for x in current.grad.tolist()]
    return found
