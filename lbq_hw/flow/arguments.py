"""Command line arguments of the commands that size a core: ``lbq plan`` and ``lbq build``."""

from __future__ import annotations

import argparse
from dataclasses import fields

from lbq_hw import zoo
from lbq_hw.commands.arguments import add_reading, reading
from lbq_hw.flow.job import Options


def add_core(parser: argparse.ArgumentParser) -> None:
    """``--board``, ``--model``, and the options that override what sizing chooses."""
    parser.add_argument(
        "--board",
        metavar="NAME",
        help="a name from lbq boards; or F.py, a board file of your own",
    )
    parser.add_argument("--model", metavar="F", help="an .lbq file or a name of the zoo")
    core = parser.add_argument_group("the core (sized for the board unless given)")
    core.add_argument("--lanes", type=int, metavar="P", help="parallel accumulators")
    core.add_argument(
        "--weight-bits",
        type=int,
        metavar="B",
        help="weight bits of the core, at least the network's",
    )
    core.add_argument(
        "--memory",
        choices=["internal", "external"],
        help="where the weights are stored (default: on the chip if they fit, else in the SDRAM)",
    )
    core.add_argument("--freq", type=float, metavar="MHZ", help="clock of the core")
    core.add_argument(
        "--no-door",
        dest="door",
        action="store_false",
        help="save 500 to 1,500 logic cells; without the door, each pixel is sent once per kernel "
        "tap and the line waits for the core, so a host gets several times fewer images per second",
    )


def add_images(parser: argparse.ArgumentParser) -> None:
    """The images that the network runs on."""
    images = parser.add_argument_group("images to check with")
    images.add_argument("--dataset", help="default: the dataset that the model was trained on")
    images.add_argument("--data", metavar="PATH", help="its folder, or an .npz file of your own")
    add_reading(images)
    images.add_argument("--raw", metavar="F", help="images of a .npy file instead")
    images.add_argument(
        "--images",
        type=int,
        default=3,
        metavar="N",
        help="number of test images, drawn at random (3)",
    )


def options(args: argparse.Namespace) -> Options:
    """The options of a build: from these arguments, and from a command's own arguments with names
    of `Options`.
    """
    asked = {
        field.name: getattr(args, field.name) for field in fields(Options) if field.name in args
    }
    return Options(**asked | {"model": zoo.find(args.model), "reading": reading(args)})
