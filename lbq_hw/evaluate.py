"""Integer accuracy and cost of a network on a dataset: ``python -m lbq_hw.evaluate --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lbq_hw import early_figure, file, golden, zoo
from lbq_hw.commands import ending, extras
from lbq_hw.commands.arguments import add_dataset, command_parser, positive, reading
from lbq_hw.commands.progress import image_bar, show_notes
from lbq_hw.datasets import DatasetError, meaning
from lbq_hw.datasets.fitting import Samples, described, load_dataset, load_samples
from lbq_hw.golden import Trace, counts, early, energy
from lbq_hw.golden.counts import Counts, LayerCounts
from lbq_hw.network import INPUT, Network
from lbq_hw.units import si, three_digits

_EPILOG = """
examples:
  python -m lbq_hw.evaluate
      the digits network of the zoo on the digits of scikit-learn
  python -m lbq_hw.evaluate --model net.lbq --data folder/of/mnist --limit 1000
      a network of your own on 1000 test images, drawn from the test split of its dataset
  python -m lbq_hw.evaluate --model mnist --data folder/of/mnist --json > mnist.json
  python -m lbq_hw.evaluate --model net.lbq --dataset images --data pictures
      PNG and JPEG files of your own, in pictures/CLASS or pictures/test/CLASS, resized
  python -m lbq_hw.evaluate --model net.lbq --dataset npz --data mine.npz
      arrays of your own: images (uint8) and labels, or test_images and test_labels

  python -m lbq_hw.evaluate --model nmnist --data folder/of/nmnist --early 200 --picture early.svg
      the accuracy after each timestep, and the gain of stopping as soon as a class leads by a
      margin, which is chosen on 200 training recordings

counts, as means per image:
  unary ACs        accumulations if a level of k were k unit events
  bit-sparse ACs   accumulations per set bit of each level: what the core executes
  formation ops    set bits of all levels, before fan-out
  shifts           accumulations of bits above bit 0, if each were shifted at run time
Totals are for the whole chip: they count the bit planes of input pixels and identity shortcuts, but
not padding taps (in JSON, keys that end in _with_padding count these too). energy_mj uses the
paper's price list: 4.6 pJ per float MAC in the first layer, elsewhere 0.9 pJ per accumulation and
0.1 pJ per formation op. The object under energy has the counts behind it, and the integer price
list (0.1 pJ per addition, 0.2 pJ per 8-bit multiplication) with an int8 ANN for comparison.
"""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The answer to each image, the accuracy in percent (None without labels), and the cost."""

    classes: tuple[int, ...]
    accuracy: float | None
    counts: Counts


def evaluate(
    network: Network,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64] | None,
    *,
    batch: int | None = None,
    advance: Callable[[int], object] | None = None,
) -> Evaluation:
    """Run raw images through golden; `advance` is called with the number of images per batch."""
    counter = counts.Counter(network)

    def observe(trace: Trace) -> None:
        counter(trace)
        if advance is not None and trace.name == network.layers[-1].name and trace.u is not None:
            advance(trace.u.shape[1])

    classes = golden.run(network, images, batch=batch, observe=observe).classes
    accuracy = None if labels is None else 100.0 * float(np.mean(classes == labels))
    return Evaluation(classes=tuple(classes.tolist()), accuracy=accuracy, counts=counter.counts())


def report(
    model: str, network: Network, samples: Samples, evaluation: Evaluation
) -> dict[str, Any]:
    """The evaluation as one JSON-able object; operations and energies are means per image.

    `accuracy` is for the images of `split`. `float_accuracy`, the accuracy of the trained float
    network, is for the images of `float_split`; older networks that do not name it were tested on
    test images. Images without labels have no accuracy, only `classes`, the network's answers.
    `class_names` has the names of the classes, empty if there are none.
    """
    cost = evaluation.counts
    prices = energy.report(cost)
    unlabelled: dict[str, Any] = {}
    if evaluation.accuracy is None:
        names = meaning.class_names(network)
        unlabelled = {"classes": list(evaluation.classes), "class_names": list(names)}
    return {
        "model": model,
        "digest": file.digest(network),
        **samples.origin(),
        "accuracy": evaluation.accuracy,
        **unlabelled,
        **_float_accuracy(network),
        "timesteps": network.timesteps,
        "capacity": max(layer.capacity for layer in network.layers),
        "weight_bits": network.weight_bits,
        "parameters": network.parameters,
        "macs": cost.macs,
        **counts.work_summary(cost.work, cost.padded),
        "formation_ops": cost.formation_ops,
        "energy_mj": prices["paper"]["lbq"]["mj"],
        "energy": prices,
        "input_plane_bits": list(cost.input_plane_bits),
        "layers": [layer.summary() for layer in cost.layers],
    }


def _float_accuracy(network: Network) -> dict[str, Any]:
    accuracy = network.meta.get("float_accuracy")
    split = None if accuracy is None else network.meta.get("float_split", "test")
    return {"float_accuracy": accuracy, "float_split": split}


def main(arguments: list[str] | None = None, *, prog: str = "python -m lbq_hw.evaluate") -> int:
    options = _parser(prog).parse_args(arguments)
    try:
        network = file.load(zoo.find(options.model))
        samples = load_samples(
            network,
            dataset=options.dataset,
            data=options.data,
            raw=options.raw,
            limit=options.limit,
            reading=reading(options),
        )
        evaluation = _with_progress(network, samples, options.batch)
        result = report(options.model, network, samples, evaluation)
        if options.early:
            result["early"] = _early(network, samples, options)
        if options.picture:
            early_figure.save(result, options.picture)
    except ModuleNotFoundError as error:
        return ending.refuse(extras.remedy(error))
    except (ValueError, DatasetError, OverflowError, MemoryError) as error:
        return ending.refuse(error)
    show_notes(samples.notes)
    if options.json:
        print(json.dumps(result))
    else:
        _show(result, evaluation.counts)
    return 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = command_parser(
        prog,
        "Run an integer network bit for bit on a dataset's test images: accuracy, "
        "operations by layer, energy.",
        _EPILOG,
    )
    parser.add_argument(
        "--model", default="digits", help="an .lbq file or a name of the zoo (default: digits)"
    )
    add_dataset(parser)
    parser.add_argument(
        "--raw",
        metavar="F",
        help="images of a .npy file instead: they have no labels, so the classes are printed",
    )
    parser.add_argument(
        "--batch",
        type=positive,
        metavar="B",
        help="images per batch; affects memory and speed, not results",
    )
    parser.add_argument(
        "--early",
        type=positive,
        metavar="N",
        help="also print the accuracy after each timestep, and the accuracy with a stop as soon as "
        "a class leads by a margin, which is chosen on N training inputs",
    )
    parser.add_argument(
        "--picture", type=Path, metavar="F", help="with --early: plot both to an .svg or .png file"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of tables"
    )
    return parser


def _early(network: Network, samples: Samples, options: argparse.Namespace) -> dict[str, Any]:
    """Accuracy after each timestep, and with an early stop by a margin from training inputs."""
    if samples.labels is None:
        raise ValueError("--early needs labels: give a dataset")
    training = load_dataset(
        network, options.dataset, options.data, options.early, reading(options), split="train"
    )
    if training.split != "train":
        raise ValueError("--early needs training inputs: give data that has a training split")
    seen = early.logits_by_step(network, training.images, batch=options.batch)
    logits = early.logits_by_step(network, samples.images, batch=options.batch)
    chosen = early.choose(seen, training.labels)
    return {
        "accuracy_by_step": early.accuracy_by_step(logits, samples.labels),
        "training": asdict(chosen),
        "test": asdict(early.stop(logits, samples.labels, chosen.margin)),
    }


def _with_progress(network: Network, samples: Samples, batch: int | None) -> Evaluation:
    with image_bar() as bar:
        task = bar.add_task(f"{network.name} on {samples.name}", total=len(samples.images))
        return evaluate(
            network,
            samples.images,
            samples.labels,
            batch=batch,
            advance=lambda done: bar.advance(task, done),
        )


def _show(result: dict[str, Any], cost: Counts) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    table = Table(title="operations per image, padding taps not counted")
    for name in ("layer", "shape"):
        table.add_column(name)
    for name in ("levels > 0", "MACs/step", "unary ACs", "bit-sparse ACs", "saved", "shifts"):
        table.add_column(name, justify="right")
    table.add_column("formation ops", justify="right")
    for layer in cost.layers:
        table.add_row(*_row(layer))
    table.add_section()
    work = cost.work
    table.add_row(
        "total",
        "",
        "",
        si(cost.macs),
        si(work.unary),
        si(work.bit_sparse),
        f"{work.saved_percent:.1f} %",
        si(work.shifts),
        si(cost.formation_ops),
    )
    console.print(table)
    pixels = sum(path.work.bit_sparse for path in cost.paths if path.source == INPUT)
    console.print(
        f"of the bit-sparse ACs, {si(pixels)} are on input pixels; with padding taps the total "
        f"is {si(cost.padded.bit_sparse)}"
    )
    console.print(_energy_table(result["energy"]))
    if "early" in result:
        _show_early(result["early"], console)
    if result["accuracy"] is None:
        found = f"classes {escape(meaning.named(result['classes'], result['class_names']))}"
    else:
        found = f"[bold]{result['accuracy']:.2f} %[/bold] of {described(result)} right"
    console.print(
        f"{escape(result['model'])} on {escape(result['dataset'])}: {found}, "
        f"T = {result['timesteps']}, N = {result['capacity']}, "
        f"{result['weight_bits']}-bit weights, {result['parameters']:,} parameters",
        highlight=False,
    )


def _show_early(found: dict[str, Any], console: Console) -> None:
    curve = found["accuracy_by_step"]
    table = Table(title="right after so many timesteps")
    shown = sorted({round(step) for step in np.linspace(1, len(curve), min(len(curve), 12))})
    for step in shown:
        table.add_column(str(step), justify="right")
    table.add_row(*(f"{curve[step - 1]:.2f} %" for step in shown))
    console.print(table)
    test, chosen = found["test"], found["training"]
    console.print(
        f"stopped at a lead of {chosen['margin']:,}, chosen on {chosen['images']:,} training "
        f"inputs ({chosen['accuracy']:.2f} % of them right): {test['accuracy']:.2f} % right after "
        f"{test['mean_steps']:.1f} of {len(curve)} timesteps",
        highlight=False,
    )


def _row(layer: LayerCounts) -> tuple[str, ...]:
    work = layer.work
    return (
        escape(layer.name),
        "x".join(map(str, layer.shape)),
        "" if layer.active is None else f"{100 * layer.active:.1f} %",
        si(layer.macs),
        si(work.unary),
        si(work.bit_sparse),
        f"{work.saved_percent:.1f} %",
        si(work.shifts),
        si(layer.formation_ops),
    )


def _energy_table(prices: dict[str, Any]) -> Table:
    table = Table(title="arithmetic energy per image")
    table.add_column("price list")
    table.add_column("execution")
    table.add_column("energy", justify="right")
    for prices_name, executions in prices.items():
        for name, entry in executions.items():
            table.add_row(prices_name, name.replace("_", " "), _joules(entry["mj"]))
        table.add_section()
    return table


def _joules(millijoules: float) -> str:
    for unit, scale in (("mJ", 1.0), ("µJ", 1e3)):
        if millijoules * scale >= 0.9995:
            return f"{three_digits(millijoules * scale)} {unit}"
    return f"{three_digits(millijoules * 1e6)} nJ"


if __name__ == "__main__":
    sys.exit(ending.run(main))
