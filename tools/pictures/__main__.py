"""``python -m tools.pictures DIR``: write every picture into a folder of pages."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from tools.pictures import event, planes, speed


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m tools.pictures",
        description="Write speed.svg (accuracy and time per image of the builds in DIR/builds), "
        "planes.svg (an animation of levels, bit planes and additions) and event.svg (the life of "
        "an event).",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="docs")
    return _write(parser.parse_args(argv))


def _write(args: argparse.Namespace) -> int:
    try:
        builds = speed.read(args.folder / "builds")
        (args.folder / "speed.svg").write_text(speed.picture(builds), encoding="utf-8")
        (args.folder / "planes.svg").write_text(planes.picture(), encoding="utf-8")
        (args.folder / "event.svg").write_text(event.picture(), encoding="utf-8")
    except (OSError, ValueError) as error:
        return ending.refuse(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
