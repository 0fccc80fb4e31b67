"""A self-test: a few inputs with their expected logits. A package contains one, so that a board can
be tested without a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from lbq_hw import golden
from lbq_hw.datasets.fitting import input_shape
from lbq_hw.network import Network
from lbq_hw.numeric import Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class SelfTest:
    """Raw `images` for the network, and their expected `logits` ``(n, classes)``."""

    images: NDArray[np.uint8]
    logits: Integers


def make(network: Network, images: NDArray[np.uint8]) -> SelfTest:
    """Images with the logits of the golden model."""
    return SelfTest(images=images, logits=golden.run(network, images).logits.astype(np.int64))


def save(test: SelfTest, path: Path) -> None:
    """Write a safetensors file with the tensors `images` and `logits`."""
    tensors = {"images": test.images, "logits": test.logits}
    path.write_bytes(
        safetensors.numpy.save({k: np.ascontiguousarray(v) for k, v in tensors.items()})
    )


def load(path: Path, network: Network) -> SelfTest:
    """Read a file of `save`; ValueError if it is not a self-test of this network."""
    try:
        found = safetensors.numpy.load(path.read_bytes())
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise ValueError(f"{path} is no self-test of this network") from error
    count = found["images"].shape[:1] if "images" in found else ()
    wanted = {
        "images": (np.dtype(np.uint8), (*count, *input_shape(network))),
        "logits": (np.dtype(np.int64), (*count, network.classes)),
    }
    if count == (0,) or wanted != {name: (a.dtype, a.shape) for name, a in found.items()}:
        raise ValueError(f"{path} is no self-test of this network")
    return SelfTest(**found)
