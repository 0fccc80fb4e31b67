"""The command ``lbq``, also ``python -m lbq_hw``: one name for the commands of the project.

Each command is a module with a `main`, which takes the arguments and the name under which it was
called. It is imported only when it is called: most commands need neither PyTorch nor Amaranth.
Python does not look for modules in the current folder when it runs an installed command, so that
``lbq train`` works beside a `train.py` of the user's own, which would shadow ``python -m train``.
"""

from __future__ import annotations

import argparse
import importlib
import sys

import lbq_hw
from lbq_hw.commands import ending, extras
from lbq_hw.commands.arguments import COMMANDS
from lbq_hw.commands.parser import Parser


def main(argv: list[str] | None = None) -> int:
    parser = _parser()
    words = sys.argv[1:] if argv is None else argv
    if not words:
        parser.print_help()
        return 0
    args = parser.parse_args(words)
    return ending.run(lambda: _call(args.command, args.arguments))


def _call(name: str, words: list[str]) -> int:
    try:
        module = importlib.import_module(COMMANDS[name].module)
        return module.main(words, prog=f"lbq {name}")
    except ModuleNotFoundError as error:
        return ending.refuse(extras.remedy(error))


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {command.meaning}" for name, command in COMMANDS.items()]
    parser = Parser(
        prog="lbq",
        description="From a PyTorch model to an FPGA bitstream, bit for bit.",
        epilog="\n".join(["commands:", *lines, "", "lbq COMMAND --help explains each."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lbq-hw {lbq_hw.__version__}")
    parser.add_argument("command", metavar="COMMAND", choices=COMMANDS, help="see below")
    parser.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="its arguments")
    return parser


if __name__ == "__main__":
    sys.exit(main())
