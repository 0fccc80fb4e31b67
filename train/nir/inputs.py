"""The inputs of a dataset in the form that a graph takes, and which of them serve to compare and to
calibrate.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import nir
import numpy as np
from numpy.typing import NDArray

from lbq_hw import datasets
from lbq_hw.datasets import Dataset, Reading, own

COMPARED = 32  # training inputs on which the network is compared with the graph
CALIBRATED = 256  # training inputs for calibration, unless told otherwise
CALIBRATED_STEPS = 4096  # the most timesteps of all these together, since all are held at once

Places = NDArray[np.int64]


def load(
    name: str,
    root: Path | None,
    graph: nir.NIRGraph,
    *,
    split: str,
    timesteps: int,
    reading: Reading,
) -> Dataset:
    """One split; recordings have `timesteps` frames, pictures the size of the graph's input."""
    options: dict[str, Any] = {"reading": reading}
    if name == own.IMAGES:
        options["shape"] = _picture_shape(graph)
    elif not datasets.is_own(name) and datasets.info(name).temporal:
        options["timesteps"] = timesteps
    return datasets.load(name, root, split=split, **options)


def _picture_shape(graph: nir.NIRGraph) -> tuple[int, ...]:
    starts = [node for node in graph.nodes.values() if isinstance(node, nir.Input)]
    shape = tuple(np.ravel(starts[0].input_type["input"]).tolist()) if starts else ()
    if len(shape) != 3:
        raise ValueError(
            f"the graph's input has the shape {shape}, to which no picture can be resized: give "
            "--dataset npz, with images of the right size"
        )
    return shape


def check_shape(graph: nir.NIRGraph, shape: tuple[int, ...]) -> None:
    """ValueError if the graph's input has another size than images of this shape."""
    for node in graph.nodes.values():
        if isinstance(node, nir.Input):
            said = tuple(np.ravel(node.input_type["input"]).tolist())
            flat = (math.prod(shape),)
            if said and tuple(n for n in said if n != 1) not in (
                tuple(n for n in shape if n != 1),
                tuple(n for n in flat if n != 1),
            ):
                raise ValueError(
                    f"the graph's input has the shape {said}, and the dataset's {tuple(shape)}: "
                    "give the data that it was trained on"
                )


def is_vector(graph: nir.NIRGraph) -> bool:
    """Whether a linear layer reads the input."""
    starts = {name for name, node in graph.nodes.items() if isinstance(node, nir.Input)}
    readers = [graph.nodes[target] for source, target in graph.edges if source in starts]
    return any(isinstance(node, nir.Linear | nir.Affine) for node in readers)


def places(inputs: int, calibrate: int | None, *, timesteps: int) -> tuple[Places, Places]:
    """The training inputs to compare on, and other ones to calibrate on. If there are no others,
    both are the same.

    Both are spread over the split, since files may be sorted by class.
    """
    if calibrate is None:
        calibrate = max(1, min(CALIBRATED, CALIBRATED_STEPS // timesteps))
    compared = _spread(np.arange(inputs), COMPARED)
    others = np.setdiff1d(np.arange(inputs), compared)
    return compared, _spread(others if others.size else compared, calibrate)


def _spread(of: Places, count: int) -> Places:
    return of[np.linspace(0, len(of) - 1, min(count, len(of))).astype(int)]
