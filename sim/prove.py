"""A bitstream's netlist as a board behind a pseudo-terminal: ``python -m lbq_hw.sim.prove``.

The netlist comes from the packed file (`lbq_hw.bitstream.netlist`), the cells from ``sim/cells``,
the pins from the board's file. The ordinary host uses its serial port, image by image, and at the
line's highest rate once the board has answered. All logits must equal golden's. Values that are
unknown at power-up are drawn for each seed; in a run in a four-state simulator they are x.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lbq_hw import bitstream, boards, file, package
from lbq_hw.bitstream import Chip, Files
from lbq_hw.boards import Board
from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.compiler import compile_network
from lbq_hw.host import __main__ as host
from lbq_hw.isa.link import LEAST_DIVISOR
from lbq_hw.package import Package
from lbq_hw.sim import board as boards_bench
from lbq_hw.sim import four_state, sdram
from lbq_hw.sim.verilator import CACHE, UNKNOWN, SimulatorError, build_bench

CELLS = Path(__file__).with_name("cells")
SEEDS = 10
EQUAL, DIFFERS = 0, 1


def verilog(chip: Chip, board: Board, packed: Package) -> str:
    """The netlist, its cells, and the bench's module around them."""
    memory = sdram.MODEL.read_text(encoding="utf-8") if packed.config.external else ""
    return chip.verilog + cells(board.family) + top(board, packed) + memory


def cells(family: str | None) -> str:
    """Models of a family's cells, with their include files; MissingError if there are none."""
    models = CELLS / f"{family}.v"
    if not models.is_file():
        raise bitstream.MissingError(
            f"the family {family} has no models of its cells (sim/cells/{models.name}): "
            "see docs/families.md"
        )

    def included(found: re.Match[str]) -> str:
        return (CELLS / found[1]).read_text(encoding="utf-8")

    text = models.read_text(encoding="utf-8")
    return re.sub(r' *`include "(\w+\.v)"\n', included, text)


def top(board: Board, packed: Package) -> str:
    """The bench's module: the chip with its clock, its serial line, its light and its SDRAM."""
    uart = "{}_{}".format(*board.uart)
    pins = {f"{board.clock}_0__io": "clk", f"{uart}__rx__io": "rx", f"{uart}__tx__io": "tx"}
    busy = "1'b1"  # without a light, the bench never sees the core idle
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
    """The SDRAM at the chip's pins; a pin is an input, an output and an enable of the netlist."""
    chip = board.chip
    assert chip is not None
    values = sdram.parameters(chip, packed.clock_hz)
    parameters = ", ".join(f".{name}({value})" for name, value in values.items())
    platform = board.make_platform()
    port: Any = platform.request("sdram", 0, dir="-")
    wires, ports = [], [".reload(1'b0)", ".violated()"]
    names = {"clk": 1, "clk_en": 1, "cs": 1, "ras": 1, "cas": 1, "we": 1, "ba": chip.bank_bits,
             "a": chip.pin_bits, "dqm": chip.data_bits // 8}  # fmt: skip
    targets = {"clk_en": "cke"} | {name: f"{name}_n" for name in ("cs", "ras", "cas", "we")}
    fixed = {"clk_en": "1'b1", "cs": "1'b0", "dqm": "0"}
    for name, width in names.items():
        target = targets.get(name, name)
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
    program: Path,
    packed: Package,
    *,
    images: int,
    raw: Path,
    options: Sequence[str],
) -> dict[str, Any]:
    """The host's facts of images on a running simulation; SimulatorError if the host fails."""
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
        arguments += ["--baud", str(packed.clock_hz // LEAST_DIVISOR)]
        code = host.main([*arguments, "--images", str(images), "--compare", "--json"])
    if code not in (EQUAL, DIFFERS):
        raise SimulatorError(told.getvalue().strip().splitlines()[-1])
    return json.loads(printed.getvalue())


def prove(
    files: Files, board: Board, packed: Package, *, raw: Path, images: int, seeds: int
) -> dict[str, Any]:
    """Facts for JSON: `images` images with the first seed, one image with each other seed, and one
    image of the smallest network in a four-state simulator.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            chip = bitstream.netlist(files, board, folder)
            text = verilog(chip, board, packed)
        except bitstream.MissingError as error:
            return {"skipped": str(error)}
        program = build_bench(text, boards_bench.BENCH, top="system", cache=CACHE, flags=UNKNOWN)
        runs: list[dict[str, Any]] = []
        for seed in range(1, seeds + 1):
            count = images if seed == 1 else 1
            options = ["+verilator+rand+reset+2", f"+verilator+seed+{seed}"]
            try:
                facts = run(program, packed, images=count, raw=raw, options=options)
                differing, cycles = facts["differing"], facts["cycles"]
                difference = f"image {differing[0]}" if differing else None
            except SimulatorError as error:
                difference, cycles = str(error), None
            runs.append(
                {
                    "simulator": f"Verilator, seed {seed}",
                    "images": count,
                    "equal": difference is None,
                    "difference": difference,
                    "cycles": cycles,
                }
            )
            if difference is not None:
                break
        else:
            runs.append(_four_states(program, text, packed, folder))
    equal = all(one.get("equal", True) for one in runs)
    return {"equal": equal, "images": images, "runs": runs, "compared": chip.compared}


def _four_states(program: Path, text: str, packed: Package, folder: Path) -> dict[str, Any]:
    """One image of the smallest network: the serial line is recorded in Verilator, and replayed in
    Icarus.
    """
    small, raw, record = folder / "smallest.lbq", folder / "smallest.npy", folder / "record"
    network = four_state.smallest(packed.config)
    file.save(network, small)
    np.save(raw, np.ones((1, *network.input.shape), np.uint8))
    compiled = compile_network(network, packed.config)
    probe = package.write(
        folder / "package",
        board=packed.board,
        config=packed.config,
        model=small,
        clock_hz=packed.clock_hz,
        baud=packed.baud,
        baked=False,
        bitstream=packed.bitstream,
        tape=compiled.tape if packed.config.external else b"",
        chip=None if packed.memory is None else packed.memory.described(),
    )
    facts = run(program, probe, images=1, raw=raw, options=[f"+record={record}"])
    told = {"simulator": "Icarus, four states", "images": 1}
    if facts["differing"]:
        return told | {"equal": False, "difference": "image 0", "cycles": facts["cycles"]}
    return told | four_state.run(text, record, memory=boards_bench.preloaded(probe))


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m lbq_hw.sim.prove",
        description="Simulate the netlist of a build's bitstream as a board, and compare its "
        "logits with the golden model.",
    )
    parser.add_argument("--build", required=True, type=Path, metavar="DIR", help="a build's folder")
    parser.add_argument("--board", help="board (the package's board)")
    parser.add_argument(
        "--raw", type=Path, metavar="F", help=".npy file of images (the build's images.npy)"
    )
    parser.add_argument(
        "--images", type=int, default=5, metavar="N", help="images with the first seed (5)"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"({SEEDS})")
    args = parser.parse_args(argv)
    try:
        packed = package.read(str(args.build / "package"))
        board = boards.find(args.board or packed.board)
        files = bitstream.files(args.build, board)
        raw = args.raw or args.build / "images.npy"
        facts = prove(files, board, packed, raw=raw, images=args.images, seeds=args.seeds)
    except (ValueError, OSError, SimulatorError, bitstream.BitsError) as error:
        return ending.refuse(error)
    print(json.dumps(facts))
    return EQUAL if facts.get("equal", True) else DIFFERS


if __name__ == "__main__":
    sys.exit(main())
