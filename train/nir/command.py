"""The command ``python -m train.nir``: a NIR graph as an integer network, or the other way."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nir
from torch import nn

from lbq_hw import datasets, file
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import add_reading, not_negative, positive, reading, spoken
from lbq_hw.commands.parser import Parser
from lbq_hw.commands.progress import show_notes
from lbq_hw.datasets import Dataset, mapping
from lbq_hw.datasets.fitting import described, draw_from
from lbq_hw.network import Network
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import accuracies, agreement, assemble
from lbq_hw.train.graph import READOUT
from lbq_hw.train.nir import inputs, read, write
from lbq_hw.train.nir.node import RESETS

_EXAMPLES = """\
inputs of the dataset:
  The scales of float weights are chosen on training inputs, so that the fewest spikes differ from
  the graph's (--calibrate). The share of spikes that still differ is measured on other training
  inputs, layer by layer. The accuracies of the graph, of the network and, with --data or
  --board-images, of the simulated board are measured on test inputs.

examples:
  python -m train.nir net.nir --out net.lbq --dataset nmnist --data DIR --timesteps 300
  python -m train.nir net.nir --out net.lbq --dataset digits --timesteps 25 --reset late
      from snnTorch, whose files say reset to zero whatever its neurons do
  python -m train.nir net.nir --out net.lbq --dataset npz --data mine.npz --timesteps 25 \\
      --weight-bits 4 --calibrate 1000
      arrays of your own; weights of few bits need more inputs for calibration
  python -m train.nir net.lbq --to-nir net.nir
"""
_TESTED = 100  # test inputs, unless told otherwise


def main(argv: list[str] | None = None, *, prog: str = "python -m train.nir") -> int:
    args = _parser(prog).parse_args(argv)
    try:
        facts = _write(args) if args.to_nir else _read(args)
    except (ValueError, OSError, datasets.DatasetError) as error:
        return ending.refuse(error)
    print(json.dumps(facts) if args.json else _told(facts))
    if "accuracies" in facts and not args.json:
        accuracies.show(facts["accuracies"])
    return 1 if accuracies.differs(facts.get("accuracies")) else 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Read a spiking network that another framework wrote as NIR, quantize its "
        "weights and write it as an integer network; or write an integer network as NIR.",
        epilog=spoken(_EXAMPLES, prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="a .nir file; with --to-nir an .lbq file")
    parser.add_argument("--out", type=Path, help="file to write; default: FILE with .lbq")
    parser.add_argument("--to-nir", type=Path, metavar="OUT", help="write FILE as NIR")
    parser.add_argument("--timesteps", type=positive, metavar="T", help="timesteps per input")
    parser.add_argument(
        "--dataset",
        metavar="NAME",
        help=f"dataset of the graph's inputs: one of {', '.join(datasets.names())}",
    )
    parser.add_argument("--data", type=Path, metavar="PATH", help="the dataset's folder or .npz")
    add_reading(parser)
    parser.add_argument(
        "--calibrate",
        type=not_negative,
        metavar="N",
        help="choose the scales of float weights on N training inputs; 0: by the error of the "
        f"weights alone; default: {inputs.CALIBRATED}, or fewer if these have more than "
        f"{inputs.CALIBRATED_STEPS:,} timesteps in all",
    )
    parser.add_argument(
        "--input-bits",
        type=positive,
        metavar="B",
        help="bits of a pixel or of a count of events; default: 1 for recordings, as many as "
        "needed for images",
    )
    parser.add_argument(
        "--full-scale",
        type=float,
        metavar="X",
        help="the pixel value that the graph saw as 1.0; default: 1 for recordings, else the "
        "largest value",
    )
    parser.add_argument("--name", help="the network's name; default: the file's")
    parser.add_argument("--weight-bits", type=int, default=8, metavar="B", help="default: 8")
    parser.add_argument(
        "--decay-bits", type=int, default=8, metavar="B", help="bits of a leak; default: 8"
    )
    parser.add_argument(
        "--dt",
        type=float,
        help="a timestep in the graph's unit of time; default: 1 if every neuron is IF with r = 1, "
        "else 1e-4, as in most frameworks",
    )
    parser.add_argument(
        "--reset",
        choices=RESETS,
        help="to zero, by subtraction, or by subtraction after the next leak (snnTorch); default: "
        "as in the file, which means zero since NIR 1.0.5",
    )
    parser.add_argument(
        "--fires",
        choices=("above", "at"),
        help="whether a membrane must pass its threshold or reach it (SpikingJelly, sinabs); "
        "default: above, as in NIR",
    )
    parser.add_argument(
        "--clamp",
        type=float,
        metavar="V",
        help="floor of the membranes, in the unit of v_threshold (sinabs' min_v_mem), which NIR "
        "does not have; default: no floor",
    )
    parser.add_argument(
        "--most-different",
        type=float,
        metavar="SHARE",
        help="refuse to import if a larger share of a layer's spikes differs from the graph's on "
        f"equal inputs; default: {agreement.MOST_ROUNDED:g}",
    )
    parser.add_argument(
        "--test",
        type=not_negative,
        default=_TESTED,
        metavar="N",
        help="number of test inputs, drawn at random, for the accuracies of graph and network; "
        f"default: {_TESTED}",
    )
    accuracies.add_board_images(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _write(args: argparse.Namespace) -> dict[str, Any]:
    network = file.load(args.file)
    graph = write.graph(network)
    nir.write(args.to_nir, graph)
    return {
        "path": str(args.to_nir),
        "nodes": len(graph.nodes),
        "notes": list(write.notes(network)),
    }


def _read(args: argparse.Namespace) -> dict[str, Any]:
    for name in ("timesteps", "dataset"):
        if getattr(args, name) is None:
            raise ValueError(f"give --{name}, which a NIR graph does not contain")
    strict = None if args.fires is None else args.fires == "above"
    graph, reading = read.load(args.file, dt=args.dt, reset=args.reset, strict=strict)
    reading = dataclasses.replace(reading, clamp=args.clamp)
    train = _data(args, graph, "train")
    inputs.check_shape(graph, train.shape)
    seen, spec = _specs(args, train)
    model = read.module(
        graph,
        reading,
        timesteps=args.timesteps,
        static=spec.static,
        flat=inputs.is_vector(graph),
    )
    compared, calibrated = inputs.places(
        len(train.images), args.calibrate, timesteps=args.timesteps
    )
    export = assemble.build(
        model,
        spec,
        name=args.name or args.file.stem,
        weight_bits=args.weight_bits,
        fraction=None,
        decay_bits=args.decay_bits,
        meta={"dataset": args.dataset, "origin": f"NIR {_version(args.file)}"},
        samples=train.images[compared],
        most_different=args.most_different,
        calibration=train.images[calibrated] if calibrated.size else None,
    )
    if len(train.class_names) == export.network.classes:
        named = dataclasses.replace(export.network, class_names=train.class_names)
        export = dataclasses.replace(export, network=named)
    path = args.out or args.file.with_suffix(".lbq")
    file.save(export.network, path)
    facts = {
        "path": str(path),
        "digest": file.digest(export.network),
        "reading": dataclasses.asdict(reading),
        "layers": [layer.name for layer in export.network.layers],
        "parameters": export.network.parameters,
        "agreement": export.agreement.to_dict(),
        "notes": list(export.notes),
    }
    if export.uncalibrated is not None:
        facts["calibrated"] = len(calibrated)
        facts["uncalibrated"] = export.uncalibrated.to_dict()
    return facts | (_tested(args, seen, model, export.network, graph) if args.test else {})


def _data(args: argparse.Namespace, graph: nir.NIRGraph, split: str) -> Dataset:
    return inputs.load(
        args.dataset,
        args.data,
        graph,
        split=split,
        timesteps=args.timesteps,
        reading=reading(args),
    )


def _specs(args: argparse.Namespace, data: Dataset) -> tuple[InputSpec, InputSpec]:
    """The inputs of the graph and of the network; the network's may have fewer bits.

    With fewer bits than full scale needs, the upper bits are used, so nothing is saturated.
    """
    if data.temporal:
        spec = InputSpec(
            shape=data.shape,
            static=False,
            bits=args.input_bits or 1,
            full_scale=args.full_scale or 1.0,
        )
        return spec, spec
    white = data.full_scale or _full_scale(args.full_scale, int(data.images.max()))
    one = args.full_scale or float(white)
    graph = InputSpec(shape=data.shape, static=True, bits=8, full_scale=one, raw_full_scale=white)
    bits = args.input_bits or max(white, int(one)).bit_length()
    shift = max(0, white.bit_length() - bits)
    network = InputSpec(
        shape=data.shape,
        static=True,
        bits=bits,
        shift=shift,
        full_scale=one * (white >> shift) / white,
        raw_full_scale=white,
    )
    return graph, network


def _full_scale(told: float | None, largest: int) -> int:
    """The raw value of full scale, for data that does not say it: the value that the graph saw as
    1, or the largest value if the graph saw raw values or none is given.
    """
    return max(largest, 1) if told is None or told <= 1 else max(1, int(told))


def _version(path: Path) -> str:
    return nir.serialization.read_version(path)


def _tested(
    args: argparse.Namespace,
    spec: InputSpec,
    model: nn.Module,
    network: Network,
    graph: nir.NIRGraph,
) -> dict[str, Any]:
    """Accuracies of graph, network and board on test inputs; only the graph sees all their bits."""
    place = args.dataset if args.data is None else str(args.data)
    test = draw_from(mapping.fitted(network, _data(args, graph, "test"), place), args.test)
    show_notes(test.notes)
    few = 0 if args.data is None and args.board_images is None else args.board_images
    found = accuracies.measure(model, spec, network, test, board_images=few)
    return {
        "tested": found["images"],
        "split": found["split"],
        "drawn": found["drawn"],
        "graph_accuracy": found["float"] / 100,
        "network_accuracy": found["integer"] / 100,
        "accuracies": found,
    }


def _calibration(facts: dict[str, Any]) -> Iterator[str]:
    """A line per layer: the share of spikes that differ, after calibration and before."""
    after, before = facts["agreement"], facts["uncalibrated"]
    yield (
        f"calibrated on {facts['calibrated']} inputs; what differs on {after['samples']} inputs, "
        "now and before calibration:"
    )
    rows = [
        (name, "classes" if name == READOUT else "spikes", share, before["layers"][name])
        for name, share in after["layers"].items()
    ]
    rows.append(("from the input on", "classes", after["classes"], before["classes"]))
    width = max(len(name) for name, *_ in rows)
    for name, what, share, other in rows:
        yield f"  {name:{width}}  {100 * share:6.2f} %  {100 * other:6.2f} %  of {what}"


def _told(facts: dict[str, Any]) -> str:
    lines = [f"wrote {facts['path']}"]
    if "reading" in facts:
        reading, compared = facts["reading"], facts["agreement"]
        worst = max(compared["layers"], key=compared["layers"].__getitem__)
        fires = "passes" if reading["strict"] else "reaches"
        clamp = "no clamp" if reading["clamp"] is None else f"a clamp of {reading['clamp']:g}"
        lines += [
            f"read with dt = {reading['dt']:g}, reset {reading['reset']}, a spike where a membrane "
            f"{fires} its threshold, {clamp} (--dt, --reset, --fires, --clamp)",
            f"{facts['parameters']:,} integers; at most {100 * compared['layers'][worst]:.2f} % of "
            f"spikes of a layer ({worst}) differ from the graph's on equal inputs",
        ]
    if "calibrated" in facts:
        lines += _calibration(facts)
    if "tested" in facts:
        lines.append(
            f"on {described(facts | {'images': facts['tested']})} the graph has "
            f"{100 * facts['graph_accuracy']:.2f} % and the network "
            f"{100 * facts['network_accuracy']:.2f} %"
        )
    return "\n".join([*lines, *(f"note: {note}" for note in facts["notes"])])
