"""Export a trained model as an integer network: ``python -m train.export RUN``."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from lbq_hw import datasets, file, numeric
from lbq_hw.commands import ending, extras
from lbq_hw.commands.arguments import not_negative, spoken
from lbq_hw.commands.parser import Parser
from lbq_hw.commands.progress import show_notes
from lbq_hw.datasets.fitting import load_dataset
from lbq_hw.network import Network

try:
    from torch import nn
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    extras.leave(error)
from lbq_hw.train import checkpoint, weights
from lbq_hw.train.data import InputSpec, Origin, in_range
from lbq_hw.train.data.origin import read as read_origin
from lbq_hw.train.deploy import accuracies, agreement, assemble
from lbq_hw.train.deploy.assemble import Export
from lbq_hw.train.settings import config as configurations
from lbq_hw.train.settings.config import Config

_TESTED = 200  # test images, unless told otherwise
_EXAMPLES = """\
examples:
  python -m train.export runs/digits --weight-bits 6 --out digits6.lbq
  python -m train.export resnet20.npz --config cifar10-resnet20-t2 \\
      --set data.mean=[0.4914,0.4822,0.4465] --set data.std=[0.2470,0.2435,0.2616]
      weights of another program, trained on images with their mean subtracted
"""


def integer_network(
    model: nn.Module,
    spec: InputSpec,
    *,
    name: str = "network",
    weight_bits: int | None = None,
    fraction: int | None = None,
    decay_bits: int = 8,
    meta: Mapping[str, Any] | None = None,
    samples: NDArray[np.uint8] | None = None,
    most_different: float | None = None,
    calibration: NDArray[np.uint8] | None = None,
    class_names: Sequence[str] = (),
    head: Literal["classes", "values"] = "classes",
) -> Network:
    """The integer network of a model made of supported layers.

    `weight_bits` defaults to what the model was trained with, else 8; `fraction`, the membrane's
    fractional bits, to as few as keep thresholds precise. Raises `GraphError` with every violation.

    The network is compared with the model on `samples`, raw inputs in the form of datasets (by
    default synthetic ones). Raises `DisagreementError` if, for equal inputs of a layer, a larger
    share of its levels than `most_different` differs; the default is 5 %, or 25 % if float weights
    are rounded. All other remarks about the export are warnings.

    `calibration` are raw inputs, too. With them, float weights get the scales with which the fewest
    levels differ on these inputs, instead of the scales with the least error of weights.

    `class_names`, in the order of the model's outputs, let commands compare them with the names in
    a dataset and print them.

    `head` is the kind of the outputs: logits of classes, or "values", for example of a regression,
    which are compared one by one. Several outputs that the model joins with ``torch.cat`` are
    values, too.
    """
    export = assemble.build(
        model,
        spec,
        name=name,
        weight_bits=weight_bits,
        fraction=fraction,
        decay_bits=decay_bits,
        meta=meta,
        samples=samples,
        most_different=most_different,
        calibration=calibration,
        class_names=class_names,
        head=head,
    )
    for note in export.notes:
        warnings.warn(note, ExportWarning, stacklevel=2)
    return export.network


class ExportWarning(UserWarning):
    """A remark about an export for its user."""


def _summary(export: Export) -> list[dict[str, Any]]:
    network, rows = export.network, []
    for layer in network.layers:
        bounds = network.bounds(layer)
        rows.append(
            {
                "layer": layer.name,
                "shape": list(layer.shape),
                "weights": sum(path.weight.size for path in layer.paths),
                "gamma": layer.gamma,
                "exponents": [path.exponent for path in layer.paths],
                "weight_error": list(export.quantized[layer.name].error),
                "acc_bits": bounds.acc_bits,
                "membrane_bits": bounds.membrane_bits,
                "different": export.agreement.layers[layer.name],
            }
        )
    return rows


def _print(
    export: Export,
    rows: list[dict[str, Any]],
    path: Path,
    found: dict[str, Any] | None,
    *,
    on_data: bool,
) -> None:
    network = export.network
    table = Table(
        title=f"{network.name}: {network.weight_bits}-bit weights, T = {network.timesteps}"
    )
    for heading in (
        "layer",
        "shape",
        "weights",
        "gamma",
        "2^x",
        "weight error",
        "acc",
        "membrane",
        "differ",
    ):
        table.add_column(heading, justify="left" if heading == "layer" else "right")
    for row in rows:
        table.add_row(
            row["layer"],
            "x".join(map(str, row["shape"])),
            f"{row['weights']:,}",
            "-" if row["gamma"] is None else f"{row['gamma']:.4f}",
            " ".join(map(str, row["exponents"])),
            " ".join(f"{100 * e:.2f} %" for e in row["weight_error"]),
            f"{row['acc_bits']} bit",
            f"{row['membrane_bits']} bit",
            f"{100 * row['different']:.2f} %",
        )
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(table)
    size = path.stat().st_size
    console.print(
        f"wrote {path} ({size:,} bytes, {network.parameters:,} integers, "
        f"{network.layers[0].fraction_bits} fractional bits)"
    )
    console.print(f"digest {file.digest(network)}")
    compared = export.agreement
    console.print(
        "differ: levels other than the model's where a layer's inputs are equal (classes, for the "
        f"readout), on {compared.samples} {'training images' if on_data else 'random inputs'}"
    )
    if on_data:
        console.print(f"classes that differ from pixels to logits: {100 * compared.classes:.2f} %")
    for note in export.notes:
        console.print(f"note: {note}", style="yellow", markup=False)
    if found is not None:
        accuracies.show(found)


def main(argv: list[str] | None = None, *, prog: str = "python -m train.export") -> int:
    parser = Parser(
        prog=prog,
        description="Fold norms, absorb gammas and write the integer network of a trained run.",
        epilog=spoken(_EXAMPLES, prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "run",
        type=Path,
        help=f"a run folder of {spoken('python -m train', prog)}, the .safetensors of its weights, "
        "or an .npz of arrays by name",
    )
    parser.add_argument(
        "--config", metavar="NAME", help="configuration of the network, if RUN is an .npz"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of --config"
    )
    parser.add_argument(
        "--weight-bits",
        type=int,
        metavar="B",
        help=f"2 to {numeric.MAX_WEIGHT_BITS}; default: what the run was trained with, else "
        f"{assemble.DEFAULT_WEIGHT_BITS}",
    )
    parser.add_argument(
        "--fraction-bits",
        type=int,
        metavar="F",
        help="fractional bits of the membrane; default: as few as keep thresholds precise",
    )
    parser.add_argument(
        "--which",
        choices=("last", "best"),
        default="last",
        help="checkpoint of the last epoch, or of the epoch that was best on the images it was "
        "tested on; default: last",
    )
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="write the run's float weights too, in half precision: NAME.safetensors, which "
        "train.init takes",
    )
    parser.add_argument("--name", help="the network's name; default: the configuration's")
    parser.add_argument("--out", type=Path, help="file to write; default: RUN/net.lbq")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="PATH",
        help="the dataset's folder or .npz file: network and model are then compared on training "
        "images, not on synthetic ones",
    )
    parser.add_argument(
        "--most-different",
        type=float,
        metavar="SHARE",
        help="refuse to export if a larger share of a layer's levels differs from the model's on "
        f"the same inputs; default: {agreement.MOST_DIFFERENT:g}, or "
        f"{agreement.MOST_ROUNDED:g} if float weights are rounded; 1 never refuses",
    )
    parser.add_argument(
        "--test",
        type=not_negative,
        metavar="N",
        help="number of test images, drawn at random, for the accuracies of model and network; "
        f"default: {_TESTED} if --data is given or the data comes with the project, else none",
    )
    accuracies.add_board_images(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    args = parser.parse_args(argv)
    try:
        export, path, found = _export(args)
    except (ValueError, OSError, datasets.DatasetError) as error:
        return ending.refuse(error)
    rows = _summary(export)
    if args.json:
        facts = {
            "path": str(path),
            "digest": file.digest(export.network),
            "weight_bits": export.network.weight_bits,
            "layers": rows,
            "agreement": export.agreement.to_dict(),
            "accuracies": found,
            "notes": list(export.notes),
        }
        print(json.dumps(facts))
    else:
        _print(export, rows, path, found, on_data=_has_data(args, export.network.meta["dataset"]))
    return 1 if accuracies.differs(found) else 0


def _export(args: argparse.Namespace) -> tuple[Export, Path, dict[str, Any] | None]:
    bare = args.run.suffix == ".npz"
    if args.weights and (bare or not weights.is_weights(args.weights)):
        raise ValueError("--weights needs a run folder, and a FILE that ends in .safetensors")
    model, config, spec, origin = _load_npz(args) if bare else _load_run(args)
    alone = bare or weights.is_weights(args.run)
    of_run = weights.origin if alone else read_origin
    data = _data_of(args, config) if bare else of_run(args.run)
    if args.weights:
        weights.save(checkpoint.load(args.run, args.which), args.weights, origin=data)
    export = assemble.build(
        model,
        spec,
        name=args.name or config.name,
        weight_bits=args.weight_bits,
        fraction=args.fraction_bits,
        decay_bits=8,
        meta={"dataset": config.data.name, **origin, "config": config.to_dict()},
        samples=_samples(config, spec, args.data) if _has_data(args, config.data.name) else None,
        most_different=args.most_different,
        class_names=data.class_names,
    )
    network = dataclasses.replace(export.network, held_out=data.held_out)
    export = dataclasses.replace(export, network=network)
    path = args.out or (args.run.with_suffix(".lbq") if alone else args.run / "net.lbq")
    path.parent.mkdir(parents=True, exist_ok=True)
    file.save(export.network, path)
    return export, path, _accuracies(args, model, config, spec, network)


def _accuracies(
    args: argparse.Namespace, model: nn.Module, config: Config, spec: InputSpec, network: Network
) -> dict[str, Any] | None:
    """The accuracies of model, network and board, if there is data to measure them."""
    has_data = _has_data(args, config.data.name)
    count = (_TESTED if has_data else 0) if args.test is None else args.test
    if not count:
        return None
    options = config.data.options(config.neuron.timesteps)
    root = None if args.data is None else str(args.data)
    data = load_dataset(network, None, root, count, options.get("reading"))
    show_notes(data.notes)
    few = 0 if args.data is None and args.board_images is None else args.board_images
    return accuracies.measure(model, spec, network, data, board_images=few)


def _has_data(args: argparse.Namespace, name: str) -> bool:
    """Whether the images of a dataset can be read."""
    return args.data is not None or datasets.is_embedded(name)


def _samples(
    config: Config, spec: InputSpec, folder: Path | None, count: int = 32
) -> NDArray[np.uint8]:
    """Training images to compare on, spread over the split, since files may be sorted by class."""
    options = config.data.options(config.neuron.timesteps)
    found = datasets.load(config.data.name, folder, split="train", **options)
    images = in_range(found, spec).images
    return images[np.linspace(0, len(images) - 1, count).astype(int)]


Loaded = tuple[nn.Module, Config, InputSpec, dict[str, Any]]


def _load_run(args: argparse.Namespace) -> Loaded:
    if args.config or args.set:
        raise ValueError("a run has its own configuration: --config and --set are for an .npz")
    index = checkpoint.index(args.run, args.which)
    origin = {"float_accuracy": index["accuracy"], "float_split": index.get("split", "test")}
    origin |= {key: index[key] for key in ("epoch", "revision")}
    return *checkpoint.load_run(args.run, args.which), origin


def _load_npz(args: argparse.Namespace) -> Loaded:
    if not args.config:
        raise ValueError(f"{args.run} needs --config: which network its arrays belong to")
    config = configurations.load(args.config, args.set)
    spec, classes = _input_of(config, args.data)
    model = checkpoint.build(config, spec, classes).eval()
    checkpoint.load_npz(model, args.run)
    return model, config, spec, {}


def _data_of(args: argparse.Namespace, config: Config) -> Origin:
    """What is known about the images that an .npz was trained on."""
    name = config.data.name
    if not datasets.is_own(name):
        return Origin(digest="", held_out=None, class_names=datasets.info(name).class_names)
    options = config.data.options(config.neuron.timesteps)
    found = datasets.load(name, args.data, split="train", **options)
    return Origin(digest="", held_out=None, class_names=found.class_names)


def _input_of(config: Config, folder: Path | None) -> tuple[InputSpec, int]:
    """The input of a network, and its number of classes; for the user's own data, from its
    files.
    """
    name = config.data.name
    if datasets.is_own(name):
        options = config.data.options(config.neuron.timesteps)
        found = datasets.load(name, folder, split="train", **options)
        return config.data.spec(found.shape, static=not found.temporal), found.classes
    info = datasets.info(name)
    channels, height, width = info.shape
    if info.temporal and config.data.size is not None:
        height = width = config.data.size
    return config.data.spec((channels, height, width), static=not info.temporal), info.classes


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(ending.run(importlib.import_module("lbq_hw.train.export").main))
