"""Learned burst quantization, deployed: integer network, golden model, compiler, core.

These names are the starting points for your own program; docs/library.md shows how to use them.
Each is imported on first use, so that a command loads only the modules that it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lbq_hw.compiler import compile_network
    from lbq_hw.config import CoreConfig
    from lbq_hw.file import load, save
    from lbq_hw.golden import predict
    from lbq_hw.golden.counts import Counter
    from lbq_hw.host import Device, SerialTransport
    from lbq_hw.network import Network
    from lbq_hw.sizing import size

__all__ = [
    "CoreConfig",
    "Counter",
    "Device",
    "Network",
    "SerialTransport",
    "compile_network",
    "load",
    "predict",
    "save",
    "size",
]
_HOMES = {
    "CoreConfig": "config",
    "Counter": "golden.counts",
    "Device": "host",
    "Network": "network",
    "SerialTransport": "host",
    "compile_network": "compiler",
    "load": "file",
    "predict": "golden",
    "save": "file",
    "size": "sizing",
}

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
