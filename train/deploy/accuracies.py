"""The accuracy of a model, its integer network and the simulated board, on the same images."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import nn

from lbq_hw import golden, units
from lbq_hw.commands import extras
from lbq_hw.commands.arguments import not_negative
from lbq_hw.compiler import CompileError
from lbq_hw.datasets import Dataset
from lbq_hw.datasets.fitting import Samples, described
from lbq_hw.host import DeviceError
from lbq_hw.network import Network
from lbq_hw.numeric import Integers
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import agreement

BOARD_IMAGES = 20
"""Default for the largest number of images on the simulated board."""
_CYCLES = 3e7  # of the board, which then takes a minute or so
_CYCLES_PER_INTEGER = 100  # to upload one over the link
_LANES = 16  # of the board's core
_BATCH = 128  # images that the model sees at once
_ROWS = {"float": "float model", "integer": "integer network", "board": "simulated board"}


def add_board_images(parser: argparse.ArgumentParser) -> None:
    """The option ``--board-images``."""
    parser.add_argument(
        "--board-images",
        type=not_negative,
        metavar="N",
        help="how many of these test images to run on a simulated board, too (a minute more if "
        f"Verilator has to compile the core); default: {BOARD_IMAGES} if --data is given, or "
        "fewer for a large network; else 0",
    )


def measure(
    model: nn.Module,
    spec: InputSpec,
    network: Network,
    data: Dataset,
    *,
    board_images: int | None,
) -> dict[str, Any]:
    """Accuracies in percent, as one JSON-able object.

    `data` has the network's range and classes, and `spec` turns it into the model's input. The
    simulated board runs the first `board_images` of the images; with None, at most `BOARD_IMAGES`,
    and as many as fit in a minute; with 0, none, and `simulated` is None. The object under
    `simulated` has all three accuracies on these images; `equal` says whether the board's logits
    equal the integer network's. If the board cannot be simulated, `board` is None, with a `reason`.
    """
    images, labels = data.images, np.asarray(data.labels)
    parts = [images[first : first + _BATCH] for first in range(0, len(images), _BATCH)]
    found = {
        "float": np.concatenate([agreement.classes(model, spec, part) for part in parts]),
        "integer": golden.predict(network, images),
    }
    shares: dict[str, Any] = {name: _percent(classes, labels) for name, classes in found.items()}
    shares["simulated"] = None
    count = min(_affordable(network) if board_images is None else board_images, len(images))
    if board_images != 0:
        board, reason = _simulate(network, images[:count])
        few = {name: _percent(classes[:count], labels[:count]) for name, classes in found.items()}
        few |= {"board": None, "equal": None}
        if board is not None:
            few["board"] = _percent(board.argmax(axis=1), labels[:count])
            few["equal"] = bool(np.array_equal(board, golden.run(network, images[:count]).logits))
        shares["simulated"] = {"images": count, "reason": reason, **few}
    return Samples.of(data).origin() | shares


def differs(facts: Mapping[str, Any] | None) -> bool:
    """Whether the simulated board has other logits than the integer network."""
    simulated = None if facts is None else facts["simulated"]
    return simulated is not None and simulated["equal"] is False


def _affordable(network: Network) -> int:
    """How many images the board can run in `_CYCLES`."""
    left = _CYCLES - _CYCLES_PER_INTEGER * network.parameters
    per_image = agreement.multiplications(network) / _LANES
    return int(np.clip(left / per_image, 0, BOARD_IMAGES))


def _simulate(network: Network, images: NDArray[np.uint8]) -> tuple[Integers | None, str | None]:
    """The logits of the simulated board, or the reason why there are none."""
    if not len(images):
        return None, "it would take minutes: give --board-images 1 to simulate it"
    print(
        f"simulating the board on {units.images(len(images))}; compiling a new core takes a minute "
        "(--board-images 0 skips this)",
        file=sys.stderr,
    )
    try:
        from lbq_hw.sim import on_board
        from lbq_hw.sim.verilog import SimulatorError
    except ModuleNotFoundError as error:
        return None, extras.remedy(error)
    try:
        return on_board.logits(network, images), None
    except CompileError:
        return None, "no core without external memory holds the network"
    except (SimulatorError, DeviceError) as error:
        return None, str(error)


def _percent(classes: NDArray[np.int64], labels: NDArray[np.int64]) -> float | None:
    return 100.0 * float(np.mean(classes == labels)) if len(labels) else None


def show(facts: Mapping[str, Any]) -> None:
    """Print the result of `measure`: one line per accuracy."""
    made = Table(title=f"accuracy on {escape(facts['dataset'])}", title_style="")
    made.add_column("")
    made.add_column(described(facts), justify="right")
    simulated = facts["simulated"]
    rows, columns = dict(_ROWS), [facts]
    if simulated is None:
        del rows["board"]
    elif simulated["images"]:
        made.add_column(f"the first {simulated['images']} of these", justify="right")
        columns.append(simulated)
    for key, row in rows.items():
        cells = (column.get(key) for column in columns)
        made.add_row(row, *("-" if cell is None else f"{cell:.2f} %" for cell in cells))
    if simulated is not None:
        made.caption = f"simulated board: {escape(_told(simulated))}"
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(made)


def _told(simulated: Mapping[str, Any]) -> str:
    if simulated["equal"] is None:
        return f"left out ({simulated['reason']})"
    if simulated["equal"]:
        return "all logits equal to the integer network's"
    return "logits DIFFER from the integer network's"
