"""A whole network on the RTL, compared with the golden model: ``python -m sim --help``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lbq_hw import boards, chips, file, sizing, units, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import add_reading, command_parser, reading
from lbq_hw.commands.progress import image_bar, show_notes
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.config import CoreConfig
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import load_samples, noise
from lbq_hw.host import DeviceError
from lbq_hw.sim import icarus, verilator
from lbq_hw.sim.check import check
from lbq_hw.sim.icarus import Simulated
from lbq_hw.sim.verilator import Verilated
from lbq_hw.sim.verilog import SimulatorError
from lbq_hw.sim.with_memory import Memory

_EPILOG = """
examples:
  python -m sim
      the digits network of the zoo on 16 lanes
  python -m sim --model mnist --lanes 16 --data folder/of/mnist --images 5
  python -m sim --model mnist --board icebreaker --data folder/of/mnist
      the core that python -m lbq_hw.build would put on that board
  python -m sim --model cifar10-resnet20 --data DIR --images 1 --core FILE --board ulx3s-85f
      a core with external memory, down to the pins of the board's SDRAM, which starts with the tape
  python -m sim --simulator icarus --images 1
      the same checks through cocotb: about 1,000 cycles per second, for small networks only
Every layer and timestep is compared; the first difference ends the run with exit code 1.
utilisation = bit-sparse ACs / (lanes x cycles), all overhead included.
"""


def main(argv: list[str] | None = None, *, prog: str = "python -m sim") -> int:
    parser = command_parser(
        prog, "Simulate a network on the core's RTL, and compare it with the golden model.", _EPILOG
    )
    parser.add_argument("--model", default="digits", help="an .lbq file or a zoo name")
    cores = parser.add_mutually_exclusive_group()
    cores.add_argument("--lanes", type=int, default=16, metavar="P", help="4 to 256 (16)")
    cores.add_argument(
        "--board",
        metavar="NAME",
        help="the core that a build chooses for a board (or F.py)",
    )
    parser.add_argument(
        "--core",
        type=Path,
        metavar="F",
        help="JSON file of a CoreConfig; with --board, the board's memory and clock are used",
    )
    parser.add_argument(
        "--freq",
        type=float,
        metavar="MHZ",
        help="clock of the core, which sets the memory's timing and the images per second "
        "(the target of a build)",
    )
    parser.add_argument(
        "--dataset", help="default: the dataset that the model was trained on, or noise if unknown"
    )
    parser.add_argument("--data", metavar="PATH", help="its folder, or an .npz file of your own")
    add_reading(parser)
    parser.add_argument("--raw", metavar="F", help="images of a .npy file instead")
    parser.add_argument("--images", type=int, default=3, metavar="N", help="random test images (3)")
    parser.add_argument(
        "--simulator",
        choices=("verilator", "icarus"),
        default="verilator",
        help="icarus: cocotb drives it, hundreds of times slower (verilator)",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=icarus.LIMIT,
        metavar="S",
        help=f"time limit for icarus, in seconds ({icarus.LIMIT:g})",
    )
    parser.add_argument(
        "--waves", type=Path, metavar="F", help="write waves as FST, for GTKWave or Surfer"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    args = parser.parse_args(argv)
    try:
        facts = _simulate(args)
    except (
        OSError, TypeError, ValueError, OverflowError, MemoryError, sizing.FitError, DatasetError,
        DeviceError, SimulatorError,
    ) as error:  # fmt: skip
        return ending.refuse(error)
    if args.json:
        print(json.dumps(facts))
    else:
        _show(facts)
    return 0 if facts["bit_exact"] and facts["on_time"] else 1


def _simulate(args: argparse.Namespace) -> dict[str, Any]:
    network = file.load(zoo.find(args.model))
    if args.dataset or args.data or args.raw or "dataset" in network.meta:
        samples = load_samples(
            network,
            dataset=args.dataset,
            data=args.data,
            raw=args.raw,
            limit=args.images,
            reading=reading(args),
        )
        show_notes(samples.notes)
        images = samples.images
    else:
        images = noise(network, args.images)
    board = None if args.board is None else boards.find(args.board)
    clock_hz = board.target_hz if board is not None else 0
    if args.core is not None:
        config = CoreConfig.from_json(args.core.read_text(encoding="utf-8"))
    elif board is not None:
        sized = sizing.size(network, board, images=images)
        config, clock_hz = sized.config, sized.clock_hz
    else:
        config = smallest_for(network, lanes=args.lanes)
    clock_hz = round(args.freq * 1e6) if args.freq else clock_hz
    memory = _memory(config, board, clock_hz)
    clock_hz = memory.clock_hz if memory is not None else clock_hz
    timing = None if memory is None else memory.timing
    program = compile_network(network, config, timing=timing)
    with image_bar() as bar:
        task = bar.add_task("building", total=None)
        core = _start(config, memory, args.simulator, args.waves, args.limit)
        bar.update(task, description="simulating", total=len(images))
        with core:
            outcome = check(
                network, program, core, images, timing=timing, advance=lambda: bar.advance(task)
            )
    facts = outcome.report()
    return facts | outcome.rates(clock_hz) if clock_hz and outcome.cycles else facts


def _memory(config: CoreConfig, board: boards.Board | None, clock_hz: int) -> Memory | None:
    """The external memory of a core: the board's memory, or a usual chip of its width."""
    if not config.external:
        return None
    if board is None:
        chip, usual_hz = chips.usual(config.external)
        return Memory(chip=chip, clock_hz=clock_hz or usual_hz)
    if board.chip is None or board.chip.data_bits != config.external:
        raise ValueError(f"board {board.name} has no external memory of {config.external} bits")
    return Memory(chip=board.chip, clock_hz=clock_hz)


def _start(
    config: CoreConfig, memory: Memory | None, simulator: str, waves: Path | None, limit: float
) -> Verilated | Simulated:
    """Build a core and start it."""
    if simulator == "icarus":
        if memory is not None:
            raise ValueError("a core with external memory must be simulated with verilator")
        return Simulated(icarus.build(config, waves=waves is not None), waves=waves, limit=limit)
    return Verilated(verilator.build(config, memory, waves=waves is not None), waves=waves)


def _show(facts: dict[str, Any]) -> None:
    table = Table(title=f"{facts['model']} on {facts['lanes']} lanes, per image")
    for heading in ("layer", "cycles", "events", "null events", "bit-sparse ACs", "utilisation"):
        table.add_column(heading, justify="left" if heading == "layer" else "right")
    for layer in facts["layers"]:
        counts = ("cycles", "events", "null_events", "acs_bit_sparse")
        numbers = [f"{layer[name]:,.0f}" for name in counts]
        table.add_row(escape(layer["name"]), *numbers, f"{layer['utilisation']:.3f}")
    table.add_section()
    total = (f"{facts['cycles']:,.0f}", "", "", f"{facts['acs_bit_sparse']:,.0f}")
    table.add_row("all", *total, f"{facts['utilisation']:.3f}")
    console = Console()
    console.print(table)
    if facts["bit_exact"]:
        console.print(f"bit-exact on {units.images(facts['images'])}", end="")
    else:
        console.print(f"DIFFERENT: {escape(facts['difference'])}", end="")
    console.print(f"; {facts['sim_cycles_per_second']:,.0f} simulated cycles per second")
    if "clock_hz" in facts:
        rate, clock = facts["images_per_second"], units.megahertz(facts["clock_hz"])
        console.print(f"{units.three_digits(rate)} images/s of the core at {clock}", end="")
        if external := facts.get("external"):
            size, waits = external["bytes"], external["wait_cycles"]
            console.print(f"; {size:,} bytes of tape, {waits:,.0f} cycles waited for it", end="")
        console.print()
    if not facts["on_time"]:
        console.print("LATE: the cycle model predicts other cycles")
