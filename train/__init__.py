"""Training of burst-spiking networks in PyTorch, and their way to integers.

The names that a model and a loop of one's own need are here; docs/library.md shows them in use.
Each is imported when it is first asked for: without PyTorch, ``python -m train`` can still say what
to install.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lbq_hw.train.data import InputSpec
    from lbq_hw.train.export import integer_network
    from lbq_hw.train.graph import GraphError
    from lbq_hw.train.layers import MergeTime, Repeat, TimeMean
    from lbq_hw.train.neurons import LBQ, BinaryLIF, QuantReLU, Ternary

__all__ = [
    "LBQ",
    "BinaryLIF",
    "GraphError",
    "InputSpec",
    "MergeTime",
    "QuantReLU",
    "Repeat",
    "Ternary",
    "TimeMean",
    "integer_network",
]
_HOMES = {
    "LBQ": "neurons",
    "BinaryLIF": "neurons",
    "GraphError": "graph",
    "InputSpec": "data",
    "MergeTime": "layers",
    "QuantReLU": "neurons",
    "Repeat": "layers",
    "Ternary": "neurons",
    "TimeMean": "layers",
    "integer_network": "export",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"lbq_hw.train.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
