"""Spiking neurons, and the ReLUs they are compared with, as interchangeable modules.

All levelled neurons share the recurrence of :mod:`train.neurons.recurrence`. Inputs and outputs are
``(T*B, ...)``, time outermost (see :mod:`train.layers`). A neuron sends ``gamma * S``, or S itself
with ``emit_levels``. Integers are exact in bf16 and ``gamma * S`` is not, so consumers that
multiply gamma into their weights train the network that is deployed. They multiply by
``gamma.detach()``, and the neuron itself adds their part of gamma's gradient: if S is used only as
``gamma * S``, this part is ``sum(S * dL/dS) / gamma``, one sum instead of one per consumer.

This file builds neurons by name. `base` has the common module, `kinds` the neurons of this project,
`baselines` the neurons of other papers, `integrate_fire` and `uniform` the neurons of networks that
were trained in other frameworks.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from lbq_hw.train.neurons.base import Neuron, Shared, softplus_inverse
from lbq_hw.train.neurons.baselines import ILIF, LMHT, MLF
from lbq_hw.train.neurons.integrate_fire import IntegrateFire, Spiking
from lbq_hw.train.neurons.kinds import LBQ, BinaryLIF, QuantReLU, ReLU, Ternary
from lbq_hw.train.neurons.uniform import UniformReLU

__all__ = [
    "ILIF",
    "KINDS",
    "LBQ",
    "LMHT",
    "MLF",
    "BinaryLIF",
    "IntegrateFire",
    "Neuron",
    "QuantReLU",
    "ReLU",
    "Spiking",
    "Ternary",
    "UniformReLU",
    "build",
    "options",
    "softplus_inverse",
]

KINDS: dict[str, Callable[..., nn.Module]] = {
    "lbq": LBQ,
    "burst": partial(LBQ, learn_gamma=False),
    "binary": BinaryLIF,
    "ternary": Ternary,
    "i-lif": ILIF,
    "mlf": MLF,
    "lm-ht": LMHT,
    "relu": ReLU,
    "quant-relu": QuantReLU,
}


def options(kind: str) -> list[str]:
    """The names of the options that ``build`` takes for this kind."""
    if kind not in KINDS:
        near = difflib.get_close_matches(str(kind), KINDS, 1, 0.0)[0]
        raise ValueError(f"kind must be one of {', '.join(KINDS)} (nearest: {near}), not {kind!r}")
    names = [*inspect.signature(KINDS[kind]).parameters]
    if "shared" in names:
        names += Shared.__annotations__
    return [name for name in names if name not in ("timesteps", "capacity", "shared")]


def build(kind: str, *, timesteps: int, capacity: int, **chosen: Any) -> nn.Module:
    """The neuron called ``kind``, with options of :func:`options`.

    ``capacity`` is ignored by the binary and the ternary neuron, which have 1, and by "relu", which
    has none.
    """
    known = options(kind)
    for name in chosen:
        if name not in known:
            raise TypeError(
                f"option of a {kind!r} neuron must be one of {', '.join(known) or 'none'},"
                f" not {name!r}"
            )
    if kind not in ("binary", "ternary", "relu"):
        chosen["capacity"] = capacity
    return KINDS[kind](timesteps=timesteps, **chosen)
