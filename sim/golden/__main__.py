"""Write the golden tensors anew."""

from __future__ import annotations

import argparse
import sys

from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.sim.golden import IMAGES, write


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m sim.golden",
        description="Write the golden tensors of a network of the zoo again.",
        epilog="example: python -m sim.golden mnist-4bit --data folder/of/mnist",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=IMAGES, help=f"of {', '.join(IMAGES)}", metavar="NAME")
    parser.add_argument("--data", metavar="PATH", help="its dataset's folder (digits needs none)")
    args = parser.parse_args(argv)
    path = write(args.name, args.data)
    print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(ending.run(main))
