"""Export a trained model as an integer network: ``python -m train.export RUN``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from torch import nn

from lbq_hw import datasets, file, numeric
from lbq_hw.network import INPUT, Network
from train import checkpoint
from train import config as configurations
from train.config import Config
from train.data import InputSpec
from train.fold import (
    Quantized,
    fraction_bits,
    integer_input,
    integer_layer,
    learned_bits,
    quantize,
)
from train.graph import Analysis, GraphError, Population, Synapse, Violation, terms
from train.neurons import Neuron
from train.trace import analyze

DEFAULT_WEIGHT_BITS = 8

_EXAMPLES = """\
examples:
  python -m train.export runs/digits --weight-bits 6 --out digits6.lbq
  python -m train.export resnet20.npz --config cifar10-resnet20-t2 \\
      --set data.mean=[0.4914,0.4822,0.4465] --set data.std=[0.2470,0.2435,0.2616]
      weights from elsewhere, trained on images with their mean subtracted
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
) -> Network:
    """The integer network of a model made of supported layers.

    `weight_bits` defaults to what the model was trained with, else 8; `fraction`, the membrane's
    fractional bits, to as few as keep thresholds precise. Raises `GraphError` with every violation.
    """
    network, _ = _build(
        model,
        spec,
        name=name,
        weight_bits=weight_bits,
        fraction=fraction,
        decay_bits=decay_bits,
        meta=meta,
    )
    return network


def _build(
    model: nn.Module,
    spec: InputSpec,
    *,
    name: str,
    weight_bits: int | None,
    fraction: int | None,
    decay_bits: int,
    meta: Mapping[str, Any] | None,
) -> tuple[Network, dict[str, Quantized]]:
    found = analyze(model, spec)
    violations = [*found.violations, *_deployment_violations(found, spec)]
    if violations:
        raise GraphError(violations)
    trained = next((b for b in map(learned_bits, found.populations) if b is not None), None)
    bits = weight_bits if weight_bits is not None else trained or DEFAULT_WEIGHT_BITS
    numeric.weight_limit(bits)
    border = _border(found, spec)
    quantized = {p.name: quantize(p, spec, bits) for p in found.populations}
    if fraction is None:
        fraction = fraction_bits(
            [
                (p.neuron.gamma.detach().double().item(), quantized[p.name].scale)
                for p in found.populations
                if p.neuron is not None
            ]
        )
    layers = []
    for population in found.populations:
        layer = integer_layer(
            population,
            quantized[population.name],
            spec,
            fraction=fraction,
            decay_bits=decay_bits,
            max_pool=found.max_pool_of(population.name),
        )
        if border:
            paths = tuple(
                dataclasses.replace(path, padding=(0, 0)) if path.source == INPUT else path
                for path in layer.paths
            )
            layer = dataclasses.replace(layer, paths=paths)
        layers.append(layer)
    network = Network(
        name=name,
        input=integer_input(spec, border),
        timesteps=found.timesteps,
        weight_bits=bits,
        layers=tuple(layers),
        meta=dict(meta or {}),
    )
    return network, quantized


def _input_paddings(found: Analysis) -> set[tuple[int, int]]:
    paddings = set()
    for population in found.populations:
        for term in terms(population.current):
            origin = term.origin
            if origin.levels.source != INPUT:
                continue
            module = origin.module if isinstance(origin, Synapse) else None
            pads = module.padding if isinstance(module, nn.Conv2d) else (0, 0)
            paddings.add((int(pads[0]), int(pads[1])))
    return paddings


def _border(found: Analysis, spec: InputSpec) -> int:
    """Width of the border that stands for zero padding of mean-subtracted images."""
    if not spec.mean:
        return 0
    return max(vertical for vertical, _ in _input_paddings(found))


def _deployment_violations(found: Analysis, spec: InputSpec) -> list[Violation]:
    """What can be trained but not deployed."""
    violations = []
    for population in found.populations:
        neuron = population.neuron
        if neuron is not None:
            violations += _neuron_violations(population, neuron)
    paddings = _input_paddings(found)
    if spec.mean and (len(paddings) > 1 or any(v != h for v, h in paddings)):
        violations.append(
            Violation(
                path=INPUT,
                reason=f"a mean is subtracted and layers pad the input differently: {paddings}",
                mend="pad all layers on the input alike, or train without a mean",
            )
        )
    pools = [levels.sum_pool for levels in found.consumed(INPUT) if levels.sum_pool is not None]
    if spec.mean and pools and {*paddings, *(pool.padding for pool in pools)} != {(0, 0)}:
        violations.append(
            Violation(
                path=INPUT,
                reason="a mean is subtracted and the input is both pooled and padded",
                mend="pool it without padding, or train without a mean",
            )
        )
    return violations


def _neuron_violations(population: Population, neuron: Neuron) -> list[Violation]:
    violations = []
    if neuron.signed:
        violations.append(
            Violation(
                path=population.name,
                reason=f"{type(neuron).__name__} emits negative levels",
                mend="use an LBQ neuron, whose levels are 0..N",
            )
        )
    if neuron.capacity > numeric.MAX_CAPACITY:
        violations.append(
            Violation(
                path=population.name,
                reason=f"its capacity is {neuron.capacity}",
                mend=f"use at most {numeric.MAX_CAPACITY} levels",
            )
        )
    return violations


def _summary(network: Network, quantized: Mapping[str, Quantized]) -> list[dict[str, Any]]:
    rows = []
    for layer in network.layers:
        bounds = network.bounds(layer)
        rows.append(
            {
                "layer": layer.name,
                "shape": list(layer.shape),
                "weights": sum(path.weight.size for path in layer.paths),
                "gamma": layer.gamma,
                "exponents": [path.exponent for path in layer.paths],
                "weight_error": list(quantized[layer.name].error),
                "acc_bits": bounds.acc_bits,
                "membrane_bits": bounds.membrane_bits,
            }
        )
    return rows


def _print(network: Network, rows: list[dict[str, Any]], path: Path) -> None:
    table = Table(
        title=f"{network.name}: {network.weight_bits}-bit weights, T = {network.timesteps}"
    )
    for heading in ("layer", "shape", "weights", "gamma", "2^x", "weight error", "acc", "membrane"):
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


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m train.export",
        description="Fold norms, absorb gammas and write the integer network of a trained run.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "run", type=Path, help="a run folder of python -m train, or an .npz of arrays by name"
    )
    parser.add_argument("--config", metavar="NAME", help="what an .npz holds the weights of")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of --config"
    )
    parser.add_argument(
        "--weight-bits",
        type=int,
        metavar="B",
        help=f"2 to {numeric.MAX_WEIGHT_BITS}; default: what the run was trained with, else "
        f"{DEFAULT_WEIGHT_BITS}",
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
        help="which checkpoint to take, the last epoch's or the best one's, whose accuracy was "
        'tested in bf16 where amp = "bf16"; default: last',
    )
    parser.add_argument("--name", help="the network's name; default: the configuration's")
    parser.add_argument("--out", type=Path, help="file to write; default: RUN/net.lbq")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    args = parser.parse_args(argv)
    try:
        network, rows, path = _export(args)
    except (ValueError, OSError, datasets.DatasetError) as error:
        print(f"train.export: {error}", file=sys.stderr)
        return 2
    if args.json:
        facts = {"path": str(path), "digest": file.digest(network), "layers": rows}
        print(json.dumps(facts | {"weight_bits": network.weight_bits}))
    else:
        _print(network, rows, path)
    return 0


def _export(args: argparse.Namespace) -> tuple[Network, list[dict[str, Any]], Path]:
    bare = args.run.suffix == ".npz"
    model, config, spec, origin = _load_npz(args) if bare else _load_run(args)
    network, quantized = _build(
        model,
        spec,
        name=args.name or config.name,
        weight_bits=args.weight_bits,
        fraction=args.fraction_bits,
        decay_bits=8,
        meta={"dataset": config.data.name, **origin, "config": config.to_dict()},
    )
    path = args.out or (args.run.with_suffix(".lbq") if bare else args.run / "net.lbq")
    path.parent.mkdir(parents=True, exist_ok=True)
    file.save(network, path)
    return network, _summary(network, quantized), path


Loaded = tuple[nn.Module, Config, InputSpec, dict[str, Any]]


def _load_run(args: argparse.Namespace) -> Loaded:
    if args.config or args.set:
        raise ValueError("a run carries its configuration: --config and --set are for an .npz")
    index = checkpoint.index(args.run, args.which)
    origin = {"float_accuracy": index["accuracy"]}
    origin |= {key: index[key] for key in ("epoch", "revision")}
    return *checkpoint.load_run(args.run, args.which), origin


def _load_npz(args: argparse.Namespace) -> Loaded:
    if not args.config:
        raise ValueError(f"{args.run} needs --config: which network its arrays belong to")
    config = configurations.load(args.config, args.set)
    info = datasets.info(config.data.name)
    channels, height, width = info.shape
    if info.temporal and config.data.size is not None:
        height = width = config.data.size
    spec = config.data.spec((channels, height, width), static=not info.temporal)
    model = checkpoint.build(config, spec, info.classes).eval()
    checkpoint.load_npz(model, args.run)
    return model, config, spec, {}


if __name__ == "__main__":
    sys.exit(main())
