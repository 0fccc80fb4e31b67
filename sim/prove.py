"""A bitstream's netlist as a board behind a pseudo-terminal: ``python -m lbq_hw.sim.prove``.

The netlist comes from the packed file (`lbq_hw.bitstream.netlist`), the cells from ``sim/cells``,
the pins from the board's file. The ordinary host speaks to its serial port, image by image, and all
logits must equal the golden model's. What begins unknown is drawn anew for each seed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lbq_hw import bitstream, boards, package
from lbq_hw.bitstream import Files
from lbq_hw.boards import Board
from lbq_hw.flow import families
from lbq_hw.host import __main__ as host
from lbq_hw.package import Package
from lbq_hw.sim import board as boards_bench
from lbq_hw.sim import sdram
from lbq_hw.sim.verilator import CACHE, UNKNOWN, SimulatorError, build_bench

CELLS = Path(__file__).with_name("cells")
SEEDS = 10
EQUAL, DIFFERS, FAILED = 0, 1, 2


def build(files: Files, board: Board, packed: Package, *, cache: Path = CACHE) -> Path:
    """Compile the simulation of a packed file on its board."""
    assert board.family is not None
    with tempfile.TemporaryDirectory() as folder:
        chip = bitstream.netlist(files, board, Path(folder))
    text = chip + (CELLS / f"{board.family}.v").read_text(encoding="utf-8") + top(board, packed)
    if packed.config.external:
        text += sdram.MODEL.read_text(encoding="utf-8")
    return build_bench(text, boards_bench.BENCH, top="system", cache=cache, flags=UNKNOWN)


def top(board: Board, packed: Package) -> str:
    """The bench's module: the chip with its clock, its serial line, its light and its SDRAM."""
    uart = "{}_{}".format(*board.uart)
    pins = {f"{board.clock}_0__io": "clk", f"{uart}__rx__io": "rx", f"{uart}__tx__io": "tx"}
    busy = "1'b1"  # without a light the bench must always go on
    if board.led is not None:
        pins["{}_{}__io".format(*board.led)] = "led"
        port: Any = board.make_platform().request(*board.led, dir="-")
        busy = "~led" if port.invert[0] else "led"
    memory = _memory(board, packed, pins) if packed.config.external else ""
    connections = ", ".join(f".{name}({wire})" for name, wire in pins.items())
    return (
        "module system (input clk, input rst, input rx, output tx, output busy);\n"
        f"  wire led;\n  assign busy = {busy};\n{memory}  chip chip ({connections});\nendmodule\n"
    )


def _memory(board: Board, packed: Package, pins: dict[str, str]) -> str:
    """The SDRAM at the chip's pins, which it has as inputs, outputs and enables."""
    chip = board.chip
    assert chip is not None
    values = sdram.parameters(chip, packed.clock_hz)
    parameters = ", ".join(f".{name}({value})" for name, value in values.items())
    platform = board.make_platform()
    port: Any = platform.request("sdram", 0, dir="-")
    wires, ports = [], [".reload(1'b0)", ".violated()"]
    names = {"clk": 1, "cke": 1, "cs": 1, "ras": 1, "cas": 1, "we": 1, "ba": chip.bank_bits,
             "a": chip.pin_bits, "dqm": chip.data_bits // 8}  # fmt: skip
    low = {"cs", "ras", "cas", "we"}
    fixed = {"cke": "1'b1", "cs": "1'b0", "dqm": "0"}
    for name, width in names.items():
        target = f"{name}_n" if name in low else name
        if not hasattr(port, name):
            ports.append(f".{target}({fixed[name]})")
            continue
        wires.append(f"  wire [{width - 1}:0] sdram_{name};\n")
        ports.append(f".{target}(sdram_{name})")
        for index in range(width):
            bit = f"[{index}]" if len(getattr(port, name).io) > 1 else ""
            pins[_escaped(f"sdram_0__{name}__io{bit}")] = f"sdram_{name}[{index}]"
    for name in ("dq_o", "dq_t", "dq_i"):
        wires.append(f"  wire [{chip.data_bits - 1}:0] {name};\n")
        for index in range(chip.data_bits):
            pins[_escaped(f"sdram_0__dq__io[{index}]{name[2:]}")] = f"{name}[{index}]"
    ports += [".dq_i(dq_o)", ".dq_driven(~dq_t[0])", ".dq_o(dq_i)"]
    return "".join(wires) + f"  sdram #({parameters}) sdram ({', '.join(ports)});\n"


def _escaped(name: str) -> str:
    """A port's name in Verilog."""
    return name.replace("[", "_").replace("]", "")


def run(
    program: Path, packed: Package, *, images: int, raw: Path, options: Sequence[str]
) -> dict[str, Any]:
    """The host's facts of images on a running simulation; SimulatorError if it gives up."""
    memory = boards_bench.preloaded(packed)
    told, printed = io.StringIO(), io.StringIO()
    with (
        boards_bench.running(
            program, clock_hz=packed.clock_hz, memory=memory, options=options
        ) as board,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(told),
    ):
        arguments = ["--port", board.name, "--package", str(packed.folder), "--raw", str(raw)]
        code = host.main([*arguments, "--images", str(images), "--compare", "--json"])
    if code not in (EQUAL, DIFFERS):
        raise SimulatorError(told.getvalue().strip().splitlines()[-1])
    return json.loads(printed.getvalue())


def prove(files: Files, board: Board, packed: Package, *, raw: Path, images: int, seeds: int):
    """Facts for JSON: `images` with the first seed, one image with each other."""
    try:
        program = build(files, board, packed)
    except bitstream.MissingError as error:
        return {"skipped": str(error)}
    runs = []
    for seed in range(1, seeds + 1):
        options = ["+verilator+rand+reset+2", f"+verilator+seed+{seed}"]
        count = images if seed == 1 else 1
        try:
            facts = run(program, packed, images=count, raw=raw, options=options)
        except SimulatorError as error:
            runs.append({"seed": seed, "images": count, "equal": False, "difference": str(error)})
            break
        differing = facts["differing"]
        runs.append(
            {
                "seed": seed,
                "images": count,
                "equal": facts["equal"],
                "difference": f"image {differing[0]}" if differing else None,
                "cycles": facts["cycles"],
            }
        )
        if differing:
            break
    return {"equal": all(one["equal"] for one in runs), "images": images, "runs": runs}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lbq_hw.sim.prove",
        description="Simulate the netlist of a build's bitstream as a board, and compare its "
        "logits with the golden model.",
    )
    parser.add_argument("--build", required=True, type=Path, metavar="DIR", help="a build's folder")
    parser.add_argument("--board", help="its board (that of the package)")
    parser.add_argument("--raw", type=Path, metavar="F", help="images (the build's images.npy)")
    parser.add_argument(
        "--images", type=int, default=5, metavar="N", help="with the first seed (5)"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"({SEEDS})")
    parser.add_argument("--routed", type=Path, metavar="F", help="an ECP5's routed netlist")
    args = parser.parse_args(argv)
    try:
        packed = package.read(str(args.build / "package"))
        board = boards.find(args.board or packed.board)
        family = families.of(board)
        files = Files(
            constraints=args.build / f"top.{family.constraints}",
            netlist=args.build / "netlist.json",
            placed=args.build / f"placed.{family.placed}",
            packed=args.build / f"top.{family.bitstream}",
            routed=args.routed,
        )
        raw = args.raw or args.build / "images.npy"
        facts = prove(files, board, packed, raw=raw, images=args.images, seeds=args.seeds)
    except (ValueError, OSError, SimulatorError, bitstream.BitsError) as error:
        print(f"prove: {error}", file=sys.stderr)
        return FAILED
    print(json.dumps(facts))
    return EQUAL if facts.get("equal", True) else DIFFERS


if __name__ == "__main__":
    sys.exit(main())
