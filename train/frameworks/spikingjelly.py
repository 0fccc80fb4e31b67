"""SpikingJelly's `IFNode`, `LIFNode` and `ParametricLIFNode`, exactly.

    h[t] = v[t-1] + x[t]                                                        IF
    h[t] = v[t-1] + (x[t] - (v[t-1] - v_reset)) / tau                           LIF, decay_input
    h[t] = v[t-1] - (v[t-1] - v_reset) / tau + x[t]                             LIF, else
    s[t] = h[t] >= v_threshold
    v[t] = v_reset where s[t], else h[t]; or h[t] - v_threshold * s[t] where v_reset is None

A membrane rests at v_reset, so the network's membrane is relative to v_reset. Instead of dividing
the input by tau, the network multiplies the threshold by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lbq_hw.train.frameworks.rules import is_own, shifted
from lbq_hw.train.graph import RefusalError
from lbq_hw.train.neurons import Spiking

_KINDS = ("IFNode", "LIFNode", "ParametricLIFNode")


def knows(module: Any) -> bool:
    """Whether this is a neuron of SpikingJelly."""
    return any(
        kind.__name__ in ("BaseNode", "SimpleBaseNode", "CUBALIFNode")
        and kind.__module__.startswith("spikingjelly.")
        for kind in type(module).__mro__
    )


@contextmanager
def at_rest(module: Any) -> Iterator[None]:
    """Within it, a neuron's membrane is reset; then its own membrane returns."""
    kept = dict(module._memories)
    module.reset()
    yield
    module._memories.update(kept)


def read(module: Any, _axes: int) -> Spiking:
    """The equal neuron of this project; RefusalError if there is no exact form."""
    name = type(module).__name__
    if name not in _KINDS or not is_own(module, "spikingjelly."):
        raise RefusalError(f"SpikingJelly's {name} has no integer form", f"use {', '.join(_KINDS)}")
    if not getattr(module.surrogate_function, "spiking", True):
        raise RefusalError("its surrogate function emits no spikes", "set spiking=True")
    beta, gain = 1.0, 1.0
    if name != "IFNode":
        rate = module.w.sigmoid().item() if name == "ParametricLIFNode" else 1.0 / module.tau
        beta, gain = 1.0 - rate, rate if module.decay_input else 1.0
    rest = 0.0 if module.v_reset is None else float(module.v_reset)
    return Spiking(
        threshold=shifted(float(module.v_threshold), rest, gain),
        beta=beta,
        to_zero=module.v_reset is not None,
    )
