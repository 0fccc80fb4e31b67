"""How a trained network uses its levels: ``python -m train.analyze RUN``.

Writes the three layer figures of the method and a JSON file with every number. The figures are the
learned step per layer, active ratio against normalized conditional entropy, and P(k | k > 0) per
layer.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor, fx, nn

from lbq_hw import datasets
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import positive, spoken
from lbq_hw.commands.parser import Parser
from lbq_hw.commands.progress import show_notes
from lbq_hw.datasets.fitting import Samples, described, draw_from, to_test_on
from lbq_hw.datasets.mapping import by_name
from lbq_hw.train.activity import level_macs
from lbq_hw.train.checkpoint import load_run
from lbq_hw.train.data import DeviceLoader, InputSpec, in_range
from lbq_hw.train.data.origin import read as read_origin
from lbq_hw.train.neurons import Neuron


class Histograms:
    """Context in which each level is counted, per layer of neurons and timestep, for all inputs of
    a model.
    """

    def __init__(self, model: nn.Module) -> None:
        self.neurons = {n: m for n, m in model.named_modules() if isinstance(m, Neuron)}
        self.counts: dict[str, NDArray[np.int64]] = {}
        self._hooks = [
            module.register_forward_hook(self._counter(name))
            for name, module in self.neurons.items()
        ]

    def _counter(self, name: str) -> Any:
        def count(neuron: Neuron, _: object, output: Tensor) -> None:
            levels = output if neuron.emit_levels else output / neuron.gamma
            steps = levels.detach().round().long().abs().unflatten(0, (neuron.timesteps, -1))
            found = [torch.bincount(s.flatten(), minlength=neuron.capacity + 1) for s in steps]
            total = torch.stack(found).cpu().numpy()
            self.counts[name] = self.counts.get(name, 0) + total

        return count

    def __enter__(self) -> Histograms:
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()


def layer_facts(counts: NDArray[np.int64]) -> dict[str, Any]:
    """Active ratio, normalized conditional entropy and P(k | k > 0) from counts ``(T, N + 1)``.

    The entropy is of the level among active neurons, divided by log N: 0 if only one level is used,
    1 if all are equally frequent (and 0, by convention, for N = 1 or without activity).
    """
    total = counts.sum(axis=0)
    active = int(total[1:].sum())
    given = total[1:] / active if active else np.zeros(len(total) - 1)
    used = given[given > 0]
    entropy = float(-(used * np.log(used)).sum()) / math.log(len(given)) if len(given) > 1 else 0.0
    return {
        "active_ratio": active / int(total.sum()),
        "entropy": max(entropy, 0.0),
        "distribution": given.tolist(),
        "histogram": counts.tolist(),
    }


def accumulations(
    model: fx.GraphModule, spec: InputSpec, histograms: Histograms
) -> dict[str, tuple[float, float]]:
    """Per neuron layer, the unary and the bit-sparse accumulations per image that its levels cause
    in the layers that read them. Taps of padding are counted; signs cost nothing.

    Layers whose levels go through a max-pool are left out, since histograms do not see its result.
    """
    names = {neuron: name for name, neuron in histograms.neurons.items()}
    found: dict[str, tuple[float, float]] = {}
    for levels, macs in level_macs(model, spec).values():
        if levels.neuron is None or levels.max_pool is not None:
            continue
        counts = histograms.counts[names[levels.neuron]]
        each, frames = counts.sum(0) / counts.sum(), len(counts)
        unary = macs * frames * sum(k * share for k, share in enumerate(each))
        sparse = macs * frames * sum(k.bit_count() * share for k, share in enumerate(each))
        before = found.get(names[levels.neuron], (0.0, 0.0))
        found[names[levels.neuron]] = (before[0] + float(unary), before[1] + float(sparse))
    return found


def summarize(layers: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The means over layers that the paper of the method gives."""
    gammas = np.array([layer["gamma"] for layer in layers])
    return {
        "gamma_min": float(gammas.min()),
        "gamma_max": float(gammas.max()),
        "gamma_cv": float(gammas.std() / gammas.mean()),
        "active_ratio": float(np.mean([layer["active_ratio"] for layer in layers])),
        "entropy": float(np.mean([layer["entropy"] for layer in layers])),
        "p_first_level": float(np.mean([layer["distribution"][0] for layer in layers])),
    }


def measure(model: fx.GraphModule, loader: DeviceLoader, *, quiet: bool = False) -> dict[str, Any]:
    """Run a dataset through a model, in full float32; returns facts of each neuron layer."""
    model.eval()
    correct = total = 0
    strict = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    with Histograms(model) as histograms, torch.no_grad(), strict:
        for x, y in track(loader, "measuring", disable=quiet, console=Console(stderr=True)):
            correct += int((model(x).argmax(1) == y).sum())
            total += len(y)
    if not histograms.counts:
        raise ValueError("the model has no neurons with levels to analyze")
    layers = []
    work = accumulations(model, loader.spec, histograms)
    for name, counts in histograms.counts.items():
        neuron = histograms.neurons[name]
        tail = None if neuron.lam is None else neuron.lam.item()
        unary, sparse = work.get(name, (None, None))
        facts = {"name": name, "gamma": neuron.gamma.item(), "lambda": tail}
        facts |= {"acs_unary": unary, "acs_bit_sparse": sparse}
        layers.append(facts | layer_facts(counts))
    return {
        "images": total,
        "accuracy": 100 * correct / total,
        "acs_unary": sum(unary for unary, _ in work.values()),
        "acs_bit_sparse": sum(sparse for _, sparse in work.values()),
        "summary": summarize(layers),
        "layers": layers,
    }


def _show(facts: Mapping[str, Any], folder: Path, figures: Sequence[str]) -> None:
    table = Table(title=f"{facts['accuracy']:.2f} % of {described(facts)}")
    for heading in ("layer", "gamma", "active", "entropy", "P(k | k > 0)"):
        table.add_column(heading, justify="left" if heading == "layer" else "right")
    for layer in facts["layers"]:
        shares = " ".join(f"{100 * p:.0f}" for p in layer["distribution"])
        numbers = (
            f"{layer['gamma']:.4f}",
            f"{layer['active_ratio']:.3f}",
            f"{layer['entropy']:.3f}",
        )
        table.add_row(layer["name"], *numbers, f"{shares} %")
    console = Console()
    console.print(table)
    console.print(f"wrote {', '.join(('analysis.json', *figures))} in {folder}")


def main(argv: list[str] | None = None, *, prog: str = "python -m train.analyze") -> int:
    from lbq_hw.train import figures  # imports matplotlib, which `measure` does not need

    parser = Parser(
        prog=prog,
        description="Draw the layer figures of a trained run and write their numbers as JSON.",
        epilog=spoken("example: python -m train.analyze runs/mnist --data DIR", prog),
    )
    parser.add_argument("run", type=Path, help=f"a run folder of {spoken('python -m train', prog)}")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of the dataset's files (data/DATASET)"
    )
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="only N test images, drawn with a fixed seed"
    )
    parser.add_argument(
        "--which",
        choices=("last", "best"),
        default="last",
        help="checkpoint of the last epoch, or of the epoch that was best on the images it was "
        "tested on; default: last",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: RUN/analysis")
    parser.add_argument("--json", action="store_true", help="print the JSON, no table")
    args = parser.parse_args(argv)
    try:
        facts = _measure_run(args)
    except (ValueError, OSError, datasets.DatasetError) as error:
        return ending.refuse(error)
    folder = args.out or args.run / "analysis"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "analysis.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    figures.draw(facts, folder)
    if args.json:
        print(json.dumps(facts))
    else:
        _show(facts, folder, figures.FIGURES)
    return 0


def _measure_run(args: argparse.Namespace) -> dict[str, Any]:
    model, config, spec = load_run(args.run, args.which)
    name, options = config.data.name, config.data.options(config.neuron.timesteps)
    folder = args.data or config.data.default_root
    whole = datasets.load(name, folder, split="test", **options)
    origin = read_origin(args.run)
    chosen = in_range(to_test_on(whole, origin.held_out, trained=True), spec)
    labels = by_name(chosen.labels, chosen.class_names, origin.class_names, str(folder))
    dataset = draw_from(dataclasses.replace(chosen, labels=labels), args.limit)
    show_notes(dataset.notes)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DeviceLoader(dataset, spec, batch=config.train.eval_batch, device=device)
    return Samples.of(dataset).origin() | measure(model.to(device), loader, quiet=args.json)


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(ending.run(importlib.import_module("lbq_hw.train.analyze").main))
