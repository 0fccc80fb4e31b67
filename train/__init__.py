"""Training of burst-spiking networks in PyTorch, and their way to integers.

The names for a model and a training loop of your own are here; docs/library.md shows them in use.
Each name is imported at its first use, so that ``python -m train`` without PyTorch can still say
what to install.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lbq_hw.train.callbacks import Callback, Log, TensorBoard
    from lbq_hw.train.conversion import convert
    from lbq_hw.train.data import InputSpec
    from lbq_hw.train.export import integer_network
    from lbq_hw.train.fitting import Fitted, fit
    from lbq_hw.train.graph import GraphError
    from lbq_hw.train.layers import MergeTime, Repeat, TimeMean
    from lbq_hw.train.neurons import LBQ, BinaryLIF, QuantReLU, Ternary
    from lbq_hw.train.preparation import prepare
    from lbq_hw.train.settings.recipe import Recipe
    from lbq_hw.train.streaming import detach_state, keep_state, reset_state, set_timesteps

__all__ = [
    "LBQ",
    "BinaryLIF",
    "Callback",
    "Fitted",
    "GraphError",
    "InputSpec",
    "Log",
    "MergeTime",
    "QuantReLU",
    "Recipe",
    "Repeat",
    "TensorBoard",
    "Ternary",
    "TimeMean",
    "convert",
    "detach_state",
    "fit",
    "integer_network",
    "keep_state",
    "prepare",
    "reset_state",
    "set_timesteps",
]
_HOMES = {
    "LBQ": "neurons",
    "BinaryLIF": "neurons",
    "Callback": "callbacks",
    "Fitted": "fitting",
    "GraphError": "graph",
    "InputSpec": "data",
    "Log": "callbacks",
    "MergeTime": "layers",
    "QuantReLU": "neurons",
    "Recipe": "settings.recipe",
    "Repeat": "layers",
    "TensorBoard": "callbacks",
    "Ternary": "neurons",
    "TimeMean": "layers",
    "convert": "conversion",
    "detach_state": "streaming",
    "fit": "fitting",
    "integer_network": "export",
    "keep_state": "streaming",
    "prepare": "preparation",
    "reset_state": "streaming",
    "set_timesteps": "streaming",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"lbq_hw.train.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
