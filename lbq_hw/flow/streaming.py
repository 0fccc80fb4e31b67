"""A bitstream with a streaming core: Verilog, synthesis, place and route, packing.

``python -m lbq_hw.flow.streaming --help``
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from lbq_hw import boards, families, file, zoo
from lbq_hw.boards import Board, clocks
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import command_parser, positive
from lbq_hw.flow import commands, steps
from lbq_hw.flow.job import FlowError
from lbq_hw.streaming import package
from lbq_hw.streaming.compiler import HORIZON, compile_stream
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.tools import logs, need
from lbq_hw.tools.process import call

_EPILOG = """
examples:
  python -m lbq_hw.flow.streaming --board tang-nano-9k --model nmnist-stream --lanes 16 --units 4
      the smallest streaming core for the network: bitstream, cells and clock, in build/
"""


def write_rtl(config: StreamConfig, board: Board, *, clock_hz: int, folder: Path) -> None:
    """The board's design as Verilog, with the constraints of its pins."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    from lbq_hw.core.streaming.system import StreamSystem
    from lbq_hw.core.top import Top

    system = StreamSystem(config, clock_hz=clock_hz, baud=board.baud)
    setting = clocks.solve(board.pll, board.clock_hz, clock_hz)
    top = Top(board=board, system=system, setting=setting)
    plan = board.make_platform().prepare(top, "top", debug_verilog=True, emit_src=False)
    pins = f"top.{families.of(board).constraints}"
    for name, product in (("top.debug.v", "top.v"), (pins, pins)):
        made = plan.files[name]
        text = made if isinstance(made, str) else made.decode()
        if product == "top.v":
            text = steps.without_zeros(text)
        (folder / product).write_text(text, encoding="utf-8")


def build(
    config: StreamConfig, board: Board, *, clock_hz: int, folder: Path, seeds: range
) -> dict[str, Any]:
    """Build a bitstream in `folder`; returns the cells by kind, the clock reached, and the seed.

    FlowError if the clock is missed with every seed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    family = families.of(board)
    write_rtl(config, board, clock_hz=clock_hz, folder=folder)
    script = ["-p", commands.script(board, full=False)]
    call(need("yosys"), script, folder=folder, log=folder / "synth.log")
    reached = {}
    for seed in seeds:
        arguments = commands.place_arguments(board, clock_hz=clock_hz, seed=seed)
        placer = need(family.placer.name)
        call(placer, arguments, folder=folder, log=folder / f"place-{seed}.log")
        report = logs.parse((folder / "place.json").read_text(encoding="utf-8"), name="place.json")
        reached[seed] = min(clock.fmax_hz for clock in logs.timing(report).clocks)
        if reached[seed] >= clock_hz:
            packer = need(family.packer.name)
            call(packer, commands.pack_arguments(board), folder=folder, log=folder / "pack.log")
            return {
                "board": board.name,
                "clock_hz": clock_hz,
                "fmax_hz": reached[seed],
                "seed": seed,
                "cells": {
                    name: [used["used"], used["available"]]
                    for name, used in report["utilization"].items()
                    if used["used"]
                },
                "bitstream": f"top.{family.bitstream}",
                "config": json.loads(config.to_json()),
            }
    best = max(reached.values()) / 1e6
    raise FlowError(
        f"the clock of {clock_hz / 1e6:g} MHz is missed; the best seed reaches {best:.1f} MHz"
    )


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.flow.streaming") -> int:
    parser = command_parser(prog, "Build a bitstream with a streaming core.", _EPILOG)
    parser.add_argument("--board", required=True, help="a board of lbq_hw.boards")
    parser.add_argument("--model", required=True, help="an .lbq file or a name of the zoo")
    parser.add_argument("--lanes", type=positive, default=16, help="weights per cycle (16)")
    parser.add_argument("--units", type=positive, default=4, help="neurons per cycle (4)")
    parser.add_argument(
        "--horizon",
        type=positive,
        default=HORIZON,
        metavar="STEPS",
        help="steps for which membranes without a leak are proven to fit; after that, the core "
        f"reports the first membrane that overflows ({HORIZON})",
    )
    parser.add_argument("--freq", type=float, metavar="MHZ", help="clock (the board's target)")
    parser.add_argument("--seed", type=positive, default=1, help="first seed of the placer (1)")
    parser.add_argument("--tries", type=positive, default=4, help="seeds to try (4)")
    parser.add_argument("--build-dir", type=Path, metavar="DIR", help="default: build/BOARD-MODEL")
    args = parser.parse_args(argv)
    try:
        facts = _build(args)
    except (ValueError, FlowError, RuntimeError, OSError) as error:
        return ending.refuse(error, 1)
    print(json.dumps(facts, indent=2))
    return 0


def _build(args: argparse.Namespace) -> dict[str, Any]:
    board = boards.find(args.board)
    model = zoo.find(args.model)
    network = file.load(model)
    program = compile_stream(network, lanes=args.lanes, units=args.units, horizon=args.horizon)
    folder = (args.build_dir or Path("build") / f"{board.name}-{network.name}-stream").resolve()
    hertz = board.target_hz if args.freq is None else round(args.freq * 1e6)
    facts = build(
        program.config,
        board,
        clock_hz=hertz,
        folder=folder,
        seeds=range(args.seed, args.seed + args.tries),
    )
    package.write(
        folder / "package",
        board=board.name,
        clock_hz=hertz,
        baud=board.baud,
        horizon=args.horizon,
        config=program.config,
        model=model,
        bitstream=folder / facts["bitstream"],
    )
    (folder / "build.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    return facts


if __name__ == "__main__":
    sys.exit(ending.run(main))
