"""Golden tensors: stored results of the golden model, so that a change of the model is noticed.

``python -m sim.golden --help`` writes them anew for networks of the zoo.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import file, golden, zoo
from lbq_hw.datasets.fitting import load_samples
from lbq_hw.network import INPUT, Network
from lbq_hw.numeric import Integers

FOLDER = Path(__file__).parent
IMAGES = {"digits": 2, "mnist-4bit": 1, "nmnist": 1}
"""Networks of the zoo, and how many test images of each are kept."""


@dataclass(frozen=True, kw_only=True)
class Tensors:
    """The tensors of some raw images or recordings, each along the first axis.

    `levels` by layer, ``(N, T, C, H, W)``: what the layer's neurons fire, after its max-pool.
    """

    images: NDArray[np.uint8]
    levels: dict[str, NDArray[np.uint8]]
    logits: Integers


def make(network: Network, images: NDArray[np.uint8]) -> Tensors:
    """Compute the tensors of a network."""
    result = golden.run(network, images, keep="levels")
    levels = {
        layer: trace.output.swapaxes(0, 1)
        for layer, trace in result.traces.items()
        if layer != INPUT and trace.output is not None
    }
    return Tensors(images=images, levels=levels, logits=result.logits)


def store(tensors: Tensors, path: Path) -> None:
    """Write an .npz file."""
    arrays: dict[str, Any] = {f"levels/{layer}": x for layer, x in tensors.levels.items()}
    np.savez_compressed(path, images=tensors.images, logits=tensors.logits, **arrays)


def read(path: Path) -> Tensors:
    """Read what was stored."""
    with np.load(path) as stored:
        levels = {
            key.removeprefix("levels/"): stored[key] for key in stored if key.startswith("levels/")
        }
        return Tensors(images=stored["images"], levels=levels, logits=stored["logits"])


def write(name: str, data: str | None = None) -> Path:
    """Compute and store the tensors of a network of the zoo; `data` is its dataset's folder."""
    network = file.load(zoo.find(name))
    images = load_samples(network, data=data, limit=IMAGES[name]).images
    path = FOLDER / f"{name}.npz"
    store(make(network, images), path)
    return path


def load(name: str) -> Tensors:
    """The stored tensors of a network of the zoo."""
    return read(FOLDER / f"{name}.npz")
