"""The budget of a network in external memory: ``python -m lbq_hw.external --help``."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lbq_hw import boards, file, golden, zoo
from lbq_hw.arguments import add_data, positive, reading
from lbq_hw.chips import captures
from lbq_hw.chips.timing import ReaderTiming, reader_timing
from lbq_hw.compiler import smallest_for
from lbq_hw.compiler.layout import lay_out
from lbq_hw.compiler.lower import lower
from lbq_hw.compiler.passes import Room, cut
from lbq_hw.compiler.passes.blocks import demands
from lbq_hw.compiler.patches import rewrite
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import load_dataset
from lbq_hw.external.narrow import narrowed, narrowed_levels
from lbq_hw.external.rams import block_rams
from lbq_hw.network import INPUT, Network

_EPILOG = """
examples:
  python -m lbq_hw.external --data folder/of/cifar10
      ResNet-20 of the zoo, 8 bits, 128 lanes of a ULX3S-85F
  python -m lbq_hw.external --data DIR --weight-bits 4 --weight-rows 1024 --partial-bits 17
  python -m lbq_hw.external --data DIR --board tang-nano-20k --narrow 2 --timesteps 1 --lanes 32 \\
      --units 2 --weight-bits 4 --partial-bits 17
  python -m lbq_hw.external --captures
      when each board takes words from its memory, and what they may drift

columns of the table:
  bands     of output rows; a band's partial sums fit in --partial-words
  stay      blocks of --block-rows weight rows that stay while their tile runs
  part      blocks of one pass that stream through; 0: all blocks of a tile fit, one pass per tile
  rows      weight rows of the layer, and how many are fetched: bands fetch again what streams
  compute   thousands of cycles of its passes: an estimate, from events that are counted exactly
  fetch     thousands of cycles that its part of the tape takes if nothing waits
  wait      thousands of cycles in which a pass waited for the tape: exact, given the compute

--activity scales all events, for a sparser network. --pairs: lanes add two weight rows in a cycle,
one of an even and one of an odd channel. Weights of fewer bits than the model has are only counted,
not rounded.
"""


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    if args.captures:
        print(json.dumps(captures.facts()) if args.json else captures.markdown().rstrip())
        return 0
    try:
        facts = _budget(args)
    except (DatasetError, OSError, OverflowError, TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(facts))
    else:
        _show(facts)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lbq_hw.external",
        description="Plan the passes of a network whose weights lie in external memory.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--model", default="cifar10-resnet20", help="an .lbq file or a name of the zoo")
    add("--board", default="ulx3s-85f", help="whose memory and block RAMs, or F.py (ulx3s-85f)")
    add("--lanes", type=positive, default=128, metavar="P")
    add("--units", type=positive, metavar="L", help="neuron units (default: a quarter of P)")
    add("--weight-bits", type=positive, metavar="N", help="default: those of the model")
    add("--weight-rows", type=positive, default=512, metavar="N", help="of the weight memory")
    add("--block-rows", type=positive, default=64, metavar="N", help="most rows of a block")
    add("--partial-words", type=positive, default=2048, metavar="N", help="of partial sums")
    add("--partial-bits", type=positive, default=21, metavar="N", help="of one partial sum")
    add("--narrow", type=positive, default=1, metavar="N", help="1/N of the model's channels")
    add("--timesteps", type=positive, metavar="T", help="default: those of the model")
    add("--activity", type=float, default=1.0, metavar="X", help="scale of the events (default: 1)")
    add("--pairs", action="store_true", help="two weight rows are added in a cycle")
    add("--halves", action="store_true", help="a weight memory of two halves, for comparison")
    add("--dataset", help="default: the one the model was trained on")
    add_data(parser)
    add(
        "--captures",
        action="store_true",
        help="print when all boards take words from their memories, as a table, and end",
    )
    add("--json", action="store_true", help="one JSON object instead of a table")
    return parser


def _levels(network: Network, args: argparse.Namespace) -> dict[str, Any]:
    """Levels of all tensors for the first test image."""
    raw = load_dataset(network, args.dataset, args.data, None, reading(args)).images[:1]
    result = golden.run(network, raw, keep="levels")
    found = {INPUT: network.input.quantize(raw)[:, 0]}
    for layer in network.layers[:-1]:
        output = result.traces[layer.name].output
        assert output is not None
        found[layer.name] = np.asarray(output)[:, 0]
    return found


def _budget(args: argparse.Namespace) -> dict[str, Any]:
    board = boards.find(args.board)
    if board.chip is None:
        raise ValueError(f"{board.title} has no external memory that a core can read")
    timing = reader_timing(board.chip, board.target_hz)
    network = file.load(zoo.find(args.model))
    levels = _levels(network, args)
    size = {"divide": args.narrow, "timesteps": args.timesteps or network.timesteps}
    network, levels = narrowed(network, **size), narrowed_levels(levels, **size)
    config = _core(network, args, timing)
    lowered = lower(lay_out(rewrite(network, config), config), config)
    fewer = network.weight_bits - config.weight_bits
    layers = [
        replace(demand, partial_bits=demand.partial_bits - max(0, fewer))
        for demand in demands(lowered, config, levels, block_rows=args.block_rows)
    ]
    for demand in layers:
        for block in (*demand.blocks, *demand.resident):
            np.multiply(block.events, args.activity, out=block.events)
    room = Room(
        slots=args.weight_rows // args.block_rows,
        block_rows=args.block_rows,
        partial_words=args.partial_words,
        partial_bits=args.partial_bits,
        groups=config.groups,
        pairs=args.pairs,
        halves=args.halves,
    )
    planned = cut(layers, config, room, timing).layers
    rams = block_rams(config, board)
    cycles = planned[-1].end
    return {
        "model": network.name,
        "board": board.name,
        "lanes": config.lanes,
        "weight_bits": config.weight_bits,
        "weight_rows": config.weight_rows,
        "plane_words": config.plane_words,
        "partial_words": args.partial_words,
        "partial_bits": args.partial_bits,
        "cycles": cycles,
        "bytes": 4 * sum(layer.slices for layer in planned),
        "images_per_second": {f"{mhz} MHz": mhz * 1e6 / cycles for mhz in (60, 75, 80, 100)},
        "block_rams": {**rams, "all": sum(rams.values()), "of": board.block_rams},
        "layers": [layer.summary() for layer in planned],
    }


def _core(network: Network, args: argparse.Namespace, timing: ReaderTiming) -> CoreConfig:
    """The smallest core but for what the tape brings pass by pass, and with outputs in place."""
    units = args.units or max(1, args.lanes // 4)
    config = smallest_for(network, lanes=args.lanes, word=args.lanes, units=units)
    tiles = max(-(-layer.shape[0] // args.lanes) for layer in network.layers)
    core = config.with_(
        weight_bits=args.weight_bits or network.weight_bits,
        weight_rows=args.weight_rows,
        plane_words=config.summary,
        channels=max(4, tiles) * args.lanes,
        layers=8,
        paths=16,
        segments=64,
        runs=128,
        external=timing.word_bits,
        profile=Profile.SPREAD,
        partial_words=args.partial_words,
        partial_bits=args.partial_bits,
        stacks=0,
        pairs=int(args.pairs),
    )
    # The input is gathered only where that makes the activations no larger.
    words = lay_out(rewrite(network, core), core).end
    return core.with_(plane_words=-(-words // core.summary) * core.summary)


def _show(facts: dict[str, Any]) -> None:
    title = f"{facts['model']}, {facts['weight_bits']} bits, {facts['lanes']} lanes"
    table = Table(title=f"{title}, {facts['weight_rows']} weight rows, {facts['board']}")
    numbers = {"bands": "bands", "resident": "stay", "part": "part", "passes": "passes",
               "rows": "rows", "rows_fetched": "fetched"}  # fmt: skip
    cycles = {"compute_cycles": "compute", "fetch_cycles": "fetch", "wait_cycles": "wait"}
    for heading in ("layer", *numbers.values(), "kB", *cycles.values()):
        table.add_column(heading, justify="left" if heading == "layer" else "right")
    for layer in facts["layers"]:
        cells = [f"{layer[name]:,}" for name in numbers]
        times = [f"{layer[name] / 1000:,.1f}" for name in cycles]
        table.add_row(escape(layer["name"]), *cells, f"{layer['bytes'] / 1000:,.1f}", *times)
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(table)
    speeds = ", ".join(f"{v:.2f} at {k}" for k, v in facts["images_per_second"].items())
    rams = ", ".join(f"{name} {count}" for name, count in facts["block_rams"].items())
    console.print(f"{facts['cycles']:,} cycles, {facts['bytes']:,} bytes; images/s: {speeds}")
    console.print(f"block RAMs: {rams}; partial sums of {facts['partial_bits']} bits")


if __name__ == "__main__":
    sys.exit(main())
