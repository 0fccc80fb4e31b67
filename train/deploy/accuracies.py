"""The accuracy of a model, its integer network and the compiled program, on the same images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import nn

from lbq_hw import golden, interpreter
from lbq_hw.compiler import CompileError, compile_network, smallest_for
from lbq_hw.datasets import Dataset
from lbq_hw.datasets.fitting import Samples, described
from lbq_hw.network import Network
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import agreement

SIMULATED = 20
"""Images that are simulated, at most."""
_WORK = 1e7  # multiplications that a simulation may take, so that it takes seconds at most
_BATCH = 128  # images that the model sees at once
_ROWS = {"float": "float model", "integer": "integer network", "board": "compiled program"}


def measure(model: nn.Module, spec: InputSpec, network: Network, data: Dataset) -> dict[str, Any]:
    """Percentages of images that are classified right, as one JSON-able object.

    `data` has the network's range and classes, and `spec` says what the model makes of it. The
    board is the smallest core that holds the network: its compiled program is executed on the first
    of the images, the object under `simulated` has all three accuracies on these, and `board` is
    None with a `reason` where that would take too long.
    """
    images, labels = data.images, np.asarray(data.labels)
    parts = [images[first : first + _BATCH] for first in range(0, len(images), _BATCH)]
    found = {
        "float": np.concatenate([agreement.classes(model, spec, part) for part in parts]),
        "integer": golden.predict(network, images),
    }
    count = min(SIMULATED, len(images), int(_WORK / agreement.multiplications(network)))
    board, reason = _simulate(network, images[:count])
    simulated: dict[str, Any] = {"images": count, "reason": reason}
    simulated |= {
        name: _percent(classes[:count], labels[:count]) for name, classes in found.items()
    }
    simulated["board"] = None if board is None else _percent(board, labels[:count])
    shares = {name: _percent(classes, labels) for name, classes in found.items()}
    return Samples.of(data).origin() | shares | {"simulated": simulated}


def _simulate(
    network: Network, images: NDArray[np.uint8]
) -> tuple[NDArray[np.int64] | None, str | None]:
    """The classes that the compiled program gives images, or why it was not executed."""
    if not len(images):
        return None, "it would take too long: lbq sim runs the network on the RTL"
    try:
        program = compile_network(network, smallest_for(network))
    except CompileError as error:
        return None, f"no core without external memory holds the network ({error})"
    logits = np.array([interpreter.run(program, image).logits for image in images])
    return logits.argmax(axis=1), None


def _percent(classes: NDArray[np.int64], labels: NDArray[np.int64]) -> float | None:
    return 100.0 * float(np.mean(classes == labels)) if len(labels) else None


def show(facts: Mapping[str, Any]) -> None:
    """Print what `measure` found, with a line for each of the three."""
    made = Table(title=f"accuracy on {facts['dataset']}", title_style="")
    made.add_column("")
    simulated = facts["simulated"]
    made.add_column(described(facts), justify="right")
    if simulated["images"]:
        made.add_column(f"the first {simulated['images']} of these", justify="right")
    for key, row in _ROWS.items():
        cells = [facts.get(key)] + ([simulated[key]] if simulated["images"] else [])
        made.add_row(row, *("-" if cell is None else f"{cell:.2f} %" for cell in cells))
    made.caption = "compiled program: " + (simulated["reason"] or "executed by the interpreter")
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(made)
