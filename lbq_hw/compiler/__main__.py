"""Compile a network and print the program: ``python -m lbq_hw.compiler --help``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from lbq_hw import file, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.compiler import compile_network, listing, smallest_for
from lbq_hw.config import CoreConfig

_EPILOG = """
examples:
  python -m lbq_hw.compiler --model digits --lanes 8
      for the smallest core with 8 lanes that runs the network
  python -m lbq_hw.compiler --model net.lbq --core core.json
      for a given core: prints the program, or every reason why it does not fit
"""


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m lbq_hw.compiler",
        description="Compile an integer network for a core and print the program.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--model", default="digits", help="an .lbq file or a name of the zoo (default: digits)"
    )
    cores = parser.add_mutually_exclusive_group()
    cores.add_argument(
        "--lanes", type=int, default=16, help="lanes of the smallest core (default: 16)"
    )
    cores.add_argument("--core", type=Path, help="JSON file of a CoreConfig")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a listing")
    args = parser.parse_args(argv)
    try:
        network = file.load(zoo.find(args.model))
        if args.core is not None:
            config = CoreConfig.from_json(args.core.read_text(encoding="utf-8"))
        else:
            config = smallest_for(network, lanes=args.lanes)
        program = compile_network(network, config)
    except (OSError, TypeError, ValueError, MemoryError) as error:
        return ending.refuse(error)
    if args.json:
        print(json.dumps(listing.summary(program)))
    else:
        print(listing.text(program), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
