"""Spiking neurons, and the ReLUs they are compared with, as interchangeable modules.

All levelled neurons share the recurrence of :mod:`train.neurons.recurrence`. Inputs and outputs are
``(T*B, ...)``, time outermost (see :mod:`train.layers`). A neuron sends ``gamma * S``, or S itself
where ``emit_levels`` is set: integers are exact in bf16, ``gamma * S`` is not, so consumers that
multiply gamma into their weights train what is deployed. They multiply by ``gamma.detach()``: the
neuron itself adds what they would find, which for everything that sees S only through ``gamma * S``
is ``sum(S * dL/dS) / gamma``, one sum instead of one per consumer.

Here: the kinds by name. `base` has what they share, `kinds` what each is, `baselines` those of
other papers, `integrate_fire` and `uniform` those of networks that other frameworks have trained.
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

    All have a capacity to choose but the binary and the ternary neuron, which have 1, and "relu",
    which has none, whatever is asked.
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
