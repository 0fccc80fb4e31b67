"""Golden tensors: what the golden model computed once, kept so that a change of it is seen.

``python -m sim.golden`` writes them anew from the networks of the zoo.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import datasets, file, golden, zoo
from lbq_hw.network import INPUT
from lbq_hw.numeric import Integers

FOLDER = Path(__file__).parent
NAMES = ("digits",)
IMAGES = 2


@dataclass(frozen=True, kw_only=True)
class Tensors:
    """Of the first test images of a network's dataset, each along the first axis.

    `levels` by layer, ``(N, T, C, H, W)``: what the layer's neurons fire, after its max-pool.
    """

    images: NDArray[np.uint8]
    levels: dict[str, NDArray[np.uint8]]
    logits: Integers


def make(name: str) -> Tensors:
    """Compute the tensors of a network of the zoo, which is named as its dataset."""
    images = datasets.load(name, split="test").images[:IMAGES]
    result = golden.run(file.load(zoo.find(name)), images, keep="levels")
    levels = {
        layer: trace.output.swapaxes(0, 1)
        for layer, trace in result.traces.items()
        if layer != INPUT and trace.output is not None
    }
    return Tensors(images=images, levels=levels, logits=result.logits)


def write(name: str) -> Path:
    """Store what `make` computes."""
    tensors = make(name)
    path = FOLDER / f"{name}.npz"
    arrays: dict[str, Any] = {f"levels/{layer}": x for layer, x in tensors.levels.items()}
    np.savez_compressed(path, images=tensors.images, logits=tensors.logits, **arrays)
    return path


def load(name: str) -> Tensors:
    """Read what was stored."""
    with np.load(FOLDER / f"{name}.npz") as stored:
        levels = {
            key.removeprefix("levels/"): stored[key] for key in stored if key.startswith("levels/")
        }
        return Tensors(images=stored["images"], levels=levels, logits=stored["logits"])
