"""Command line arguments that several commands share."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

from lbq_hw import datasets
from lbq_hw.commands.parser import Parser
from lbq_hw.datasets import Reading
from lbq_hw.datasets.reading import BACKGROUNDS, LAYOUTS


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of ``lbq``: the `module` whose `main` it calls, and its description."""

    module: str
    meaning: str

    @property
    def spelled(self) -> str:
        """The command for Python in the repository, where `train` and `sim` have short names."""
        name = self.module.removesuffix(".__main__").removesuffix(".command")
        return f"python -m {re.sub(r'^lbq_hw[.](?=train|sim)', '', name)}"


COMMANDS = {
    "train": Command(
        module="lbq_hw.train.__main__",
        meaning="train a network of burst neurons from a TOML configuration",
    ),
    "export": Command(
        module="lbq_hw.train.export", meaning="write the integer network of a trained run"
    ),
    "import": Command(
        module="lbq_hw.train.nir.__main__",
        meaning="write the integer network of a NIR graph from another framework, or the reverse",
    ),
    "evaluate": Command(
        module="lbq_hw.evaluate",
        meaning="accuracy, operations and energy of an integer network on a dataset",
    ),
    "analyze": Command(
        module="lbq_hw.train.analyze", meaning="plots and statistics of a trained run's layers"
    ),
    "zoo": Command(
        module="lbq_hw.zoo.__main__", meaning="the trained networks that ship with the project"
    ),
    "sim": Command(
        module="lbq_hw.sim.command",
        meaning="simulate a network on the core's RTL, and compare it with the golden model",
    ),
    "regression": Command(
        module="lbq_hw.sim.regression",
        meaning="testbenches of the core's blocks, or of your own network, under cocotb",
    ),
    "plan": Command(
        module="lbq_hw.plan",
        meaning="which boards hold a network, and its cycles by layer on one board",
    ),
    "explore": Command(
        module="lbq_hw.explore.__main__",
        meaning="find the cores that are worth building, by estimates or by place and route",
    ),
    "boards": Command(module="lbq_hw.commands.boards", meaning="the boards, with their FPGAs"),
    "build": Command(
        module="lbq_hw.build", meaning="a bitstream, a package and a report for a board"
    ),
    "rtl": Command(
        module="lbq_hw.rtl.__main__",
        meaning="the core as Verilog for your own design, with a driver in C",
    ),
    "bring-up": Command(
        module="lbq_hw.bring_up.__main__",
        meaning="test a new board step by step: what fails, and how to fix it",
    ),
    "host": Command(module="lbq_hw.host.__main__", meaning="run images on a board"),
    "live": Command(
        module="lbq_hw.live.__main__",
        meaning="a local page: draw, drop a picture or replay, and watch the network",
    ),
    "sim-board": Command(
        module="lbq_hw.sim.board",
        meaning="a whole board in simulation, behind a port that the host opens",
    ),
    "doctor": Command(
        module="lbq_hw.doctor",
        meaning="which tools and libraries are installed, and how to install the others",
    ),
}


def spoken(text: str, prog: str) -> str:
    """`text` with commands spelled as ``lbq NAME`` if the user called this command that way."""
    if not prog.startswith("lbq "):
        return text
    names = {command.spelled: f"lbq {name}" for name, command in COMMANDS.items()}
    return re.sub(r"python -m \w+(\.\w+)*", lambda found: names.get(found[0], found[0]), text)


def command_parser(prog: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """A command's parser; `epilog` keeps its line breaks, and its commands become `spoken`."""
    return Parser(
        prog=prog,
        description=description,
        epilog=spoken(epilog, prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def positive(text: str) -> int:
    """An integer of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return value


def not_negative(text: str) -> int:
    """An integer of at least 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, not {text}")
    return value


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """The options that choose the test images: ``--dataset``, ``--data`` and ``--limit``."""
    known = ", ".join(datasets.names())
    parser.add_argument(
        "--dataset", help=f"one of {known} (default: the dataset that the model was trained on)"
    )
    add_data(parser)
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="only N test images, drawn with a fixed seed"
    )


def add_data(parser: argparse.ArgumentParser) -> None:
    """The options for the place of a dataset and for reading it: ``--data``, ``--layout`` and
    ``--background``."""
    parser.add_argument(
        "--data",
        metavar="PATH",
        help="folder of the dataset's files, official ones or torchvision's (digits needs none), "
        "or an .npz file of your own",
    )
    add_reading(parser)


def add_reading(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The options for reading the user's own data: ``--layout`` and ``--background``."""
    parser.add_argument(
        "--layout",
        choices=LAYOUTS,
        help="order of the axes of your own arrays, if their shape is ambiguous",
    )
    parser.add_argument(
        "--background",
        choices=BACKGROUNDS,
        help="background of transparent pixels in your own pictures",
    )


def reading(args: argparse.Namespace) -> Reading:
    """The values of `add_reading`'s options."""
    return Reading(layout=args.layout, background=args.background)
