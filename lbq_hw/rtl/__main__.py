"""The core for your own design: ``python -m lbq_hw.rtl --help``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from lbq_hw import file, zoo
from lbq_hw.commands import ending, extras
from lbq_hw.commands.arguments import spoken
from lbq_hw.commands.parser import Parser
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.config import CoreConfig

_BUSES = ("plain", "wishbone", "axi4lite")
_EPILOG = """
examples:
  python -m lbq_hw.rtl --model digits --bus axi4lite --out digits-core
      the smallest core with 16 lanes for the digits, behind AXI4-Lite
  python -m lbq_hw.rtl --model net.lbq --lanes 32 --bus wishbone --out DIR
  python -m lbq_hw.rtl --model net.lbq --core core.json --bus plain --out DIR
      a core of your own size; with external memory, it reads its program as a stream of words

DIR gets:
  lbq_core.v       the module lbq_core: Verilog for any FPGA, with the program in its memories
  lbq_core.h, .c   a driver in C: send an input, wait, read the logits
  registers.md     the register map, also as registers.rdl in SystemRDL
  lbq_core.core    for FuseSoC
  example_top.v    from a camera's pixels to the number of a class, without a host
  core.json        the size of the core, for --core
  tape.bin         with external memory: its contents, from address 0 on

Pixels come through the bus or as an AXI-Stream. The core runs after the last pixel, sends the
logits as a stream, and raises irq. docs/own-design.md has an example.
"""


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.rtl") -> int:
    parser = Parser(
        prog=prog,
        description="Write a network's core as Verilog for your own design, with its register map, "
        "a driver in C and an example.",
        epilog=spoken(_EPILOG, prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", required=True, help="an .lbq file or a name of the zoo")
    cores = parser.add_mutually_exclusive_group()
    cores.add_argument(
        "--lanes", type=int, default=16, metavar="P", help="lanes of the smallest core (16)"
    )
    cores.add_argument("--core", type=Path, metavar="F", help="JSON file of a CoreConfig")
    parser.add_argument("--bus", choices=_BUSES, default="axi4lite", help="host bus (axi4lite)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    try:
        facts = _write(args)
    except ModuleNotFoundError as error:
        return ending.refuse(extras.remedy(error))
    except (OSError, TypeError, ValueError, MemoryError) as error:
        return ending.refuse(error)
    if args.json:
        print(json.dumps(facts))
        return 0
    print(f"{facts['model']} on {facts['lanes']} lanes, {facts['bus']}, in {facts['folder']}:")
    for name, size in facts["files"].items():
        print(f"  {name:15} {size:>10,} bytes")
    return 0


def _write(args: argparse.Namespace) -> dict[str, Any]:
    from lbq_hw.isa import bus
    from lbq_hw.rtl.design import Design
    from lbq_hw.rtl.files import files

    network = file.load(zoo.find(args.model))
    if args.core is not None:
        config = CoreConfig.from_json(args.core.read_text(encoding="utf-8"))
    else:
        config = smallest_for(network, lanes=args.lanes)
    design = Design(program=compile_network(network, config), bus=args.bus)
    args.out.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for name, contents in files(design):
        (args.out / name).write_bytes(contents)
        sizes[name] = len(contents)
    return {
        "model": network.name,
        "bus": args.bus,
        "lanes": config.lanes,
        "digest": config.digest,
        "address_bits": bus.address_bits(config),
        "classes": len(design.logits),
        "folder": str(args.out),
        "files": sizes,
    }


if __name__ == "__main__":
    sys.exit(ending.run(main))
