"""Accuracy, activity and cost of an integer network: ``python -m train.measure NET.lbq``.

The network runs in torch, on the GPU if there is one. Counts are kept there too; only sums come
back. The figures equal ``python -m lbq_hw.evaluate`` number for number, and there are more on how
each layer uses its levels. ``--compare-golden`` checks that logits of the first images equal
golden's.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from lbq_hw import evaluate, file, golden, units, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import add_dataset, positive, reading
from lbq_hw.commands.parser import Parser
from lbq_hw.commands.progress import show_notes
from lbq_hw.datasets import Dataset, DatasetError
from lbq_hw.datasets.fitting import Samples, described, load_dataset
from lbq_hw.evaluate import Evaluation
from lbq_hw.golden import counts
from lbq_hw.network import Network
from lbq_hw.train import analyze
from lbq_hw.train.checkpoint import load_run
from lbq_hw.train.data import DeviceLoader
from lbq_hw.train.deploy.device_counts import DeviceCounter
from lbq_hw.train.deploy.integer import IntegerNetwork
from lbq_hw.train.neurons import Neuron

_EPILOG = """\
examples:
  python -m train.measure net.lbq --data folder/of/cifar10 --out net.json
  python -m train.measure net.lbq --data folder/of/cifar10 --compare-golden 50 \\
      --run runs/cifar10-resnet20-t2-fast --out net.json
      with the run that the network was exported from: its float accuracy, gamma and lambda
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """The result of a dataset: `histograms` by layer name, `logits` of every image."""

    evaluation: Evaluation
    histograms: dict[str, NDArray[np.int64]]
    logits: NDArray[np.int64]


def measure(
    network: Network,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    batch: int | None = None,
    device: torch.device | str = "cpu",
    quiet: bool = True,
) -> Measurement:
    """Run raw images through the network in torch, `batch` at a time, which affects only memory and
    speed. Shows a progress bar unless `quiet`.
    """
    device = torch.device(device)
    if batch is None:
        batch = 250 if device.type == "cuda" else 10
    model = IntegerNetwork(network).to(device)
    counter = DeviceCounter(network)
    logits = []
    starts = range(0, len(images), batch)
    console = Console(stderr=True)
    bar = track(starts, "measuring", console=console, disable=quiet or not console.is_terminal)
    for start in bar:
        raw = torch.from_numpy(images[start : start + batch]).to(device)
        counter.see_input(model.quantize(raw))
        logits.append(model(raw, counter.see_layer).cpu())  # waits, so that the bar is correct
    found = torch.cat(logits).numpy()
    histograms = counter.histograms()
    # numpy's argmax, as in golden: it returns the first of equal logits, torch's may not
    classes = found.argmax(axis=1)
    accuracy = 100.0 * float(np.mean(classes == labels))
    evaluation = Evaluation(
        classes=tuple(classes.tolist()), accuracy=accuracy, counts=counter.counts()
    )
    return Measurement(evaluation=evaluation, histograms=histograms, logits=found)


def report(
    model: str, network: Network, samples: Samples, measurement: Measurement
) -> dict[str, Any]:
    """`lbq_hw.evaluate`'s report with more facts per spiking layer: gamma, the use of levels, and
    `popcount`, set bits per neuron and timestep; ``levels`` has the means over layers.
    """
    result = evaluate.report(model, network, samples, measurement.evaluation)
    described = []
    for layer in result["layers"]:
        histogram = measurement.histograms.get(layer["name"])
        if histogram is None:
            continue
        layer |= {"gamma": network.by_name[layer["name"]].gamma, **analyze.layer_facts(histogram)}
        bits = sum(int(n) * k.bit_count() for k, n in enumerate(histogram.sum(0)))
        layer["popcount"] = bits / int(histogram.sum())
        described.append(layer)
    if described and all(layer["gamma"] is not None for layer in described):
        result["levels"] = analyze.summarize(described)
    return result


def compare_with_golden(
    network: Network, images: NDArray[np.uint8], measurement: Measurement
) -> dict[str, Any]:
    """Run golden on the first images; ValueError if a logit differs."""
    expected = golden.run(network, images).logits
    different = np.flatnonzero((expected != measurement.logits[: len(images)]).any(axis=1))
    if len(different):
        raise ValueError(f"logits must equal golden's, and those of image {different[0]} do not")
    return {"images": len(images), "logits_equal": True}


def float_run(
    folder: Path, network: Network, dataset: Dataset, device: torch.device
) -> tuple[dict[str, Any], dict[str, float | None]]:
    """The float network of an integer network, on the same images: its facts without histograms,
    and lambda per layer. ValueError if the run belongs to another network.
    """
    model, config, spec = load_run(folder)
    for name, neuron in model.named_modules():
        if not isinstance(neuron, Neuron):
            continue
        gamma = network.by_name[name].gamma if name in network.by_name else None
        if gamma is None or not math.isclose(gamma, neuron.gamma.item()):
            raise ValueError(
                f"{folder} must be the run that the network was exported from, and the gamma of "
                f"its layer {name!r} is not the network's"
            )
    loader = DeviceLoader(dataset, spec, batch=config.train.eval_batch, device=device)
    facts = analyze.measure(model.to(device), loader, quiet=not sys.stderr.isatty())
    tails = {layer["name"]: layer["lambda"] for layer in facts["layers"]}
    return {key: facts[key] for key in ("images", "accuracy", "summary")}, tails


def main(argv: list[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        network = file.load(zoo.find(args.net))
        dataset = load_dataset(network, args.dataset, args.data, args.limit, reading(args))
        measurement = measure(
            network,
            dataset.images,
            dataset.labels,
            batch=args.batch,
            device=device,
            quiet=False,
        )
        result = report(Path(args.net).name, network, Samples.of(dataset), measurement)
        if args.compare_golden:
            images = dataset.images[: args.compare_golden]
            result["golden"] = compare_with_golden(network, images, measurement)
        if args.run is not None:
            result["float"], tails = float_run(args.run, network, dataset, device)
            for layer in result["layers"]:
                layer["lambda"] = tails.get(layer["name"])
    except (ValueError, OverflowError, OSError, DatasetError) as error:
        return ending.refuse(error)
    show_notes(dataset.notes)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result) + "\n", encoding="utf-8")
    _show(result, args.out)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m train.measure",
        description="Run an integer network in torch on a dataset's test images and write its "
        "accuracy, use of levels, operations and energy as JSON.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("net", help="an .lbq file or a name of the zoo")
    add_dataset(parser)
    parser.add_argument(
        "--batch",
        type=positive,
        metavar="B",
        help="images at a time; affects only memory and speed",
    )
    parser.add_argument(
        "--compare-golden",
        type=positive,
        metavar="K",
        help="run the first K images through golden too, and fail unless all logits are equal",
    )
    parser.add_argument(
        "--run", type=Path, metavar="DIR", help="the network's run: measure its float form too"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON to write")
    return parser


def _show(result: dict[str, Any], path: Path) -> None:
    console = Console(highlight=False, soft_wrap=True)
    saved = counts.saved_percent(result["acs_unary"], result["acs_bit_sparse"])
    console.print(
        f"{result['accuracy']:.2f} % of {described(result)}, "
        f"{result['acs_bit_sparse'] / 1e6:,.1f} M bit-sparse ACs per image, {saved:.1f} % saved"
    )
    if "float" in result:
        console.print(f"float: {result['float']['accuracy']:.2f} % of the same images")
    if "golden" in result:
        console.print(
            f"logits equal golden's on the first {units.images(result['golden']['images'])}"
        )
    console.print(f"wrote {path}")


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(importlib.import_module("lbq_hw.train.measure").main())
