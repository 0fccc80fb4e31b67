"""Predictions for several images as one JSON-able object, as ``python -m sim --json`` has it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

from lbq_hw.cycles.model import LayerCycles


def means(images: Sequence[Sequence[LayerCycles]], *, adders: int) -> dict[str, Any]:
    """Means over images, from the layers that `predict` returned for each; `adders` of the core."""
    totals = [reduce(operator.add, layer) for layer in zip(*images, strict=True)]
    layers = [total.summary(adders, images=len(images)) for total in totals]
    cycles, acs = (sum(layer[name] for layer in layers) for name in ("cycles", "acs_bit_sparse"))
    return {
        "images": len(images),
        "cycles": cycles,
        "acs_bit_sparse": acs,
        "utilisation": acs / (adders * cycles),
        "layers": layers,
    }
