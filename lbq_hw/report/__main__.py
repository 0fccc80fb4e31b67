"""Makes a report's page or a table of builds from JSON: ``python -m lbq_hw.report --help``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.report import ReportError, rebuild
from lbq_hw.report.table import markdown

_EPILOG = """
examples:
  python -m lbq_hw.report build/icebreaker-mnist/report
  python -m lbq_hw.report --markdown docs/builds/*.json
      the table of README.md
"""


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m lbq_hw.report",
        description="Make report.html from the JSON files beside it, or a table of several builds.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, nargs="?", help="folder of a report")
    parser.add_argument(
        "--markdown", type=Path, nargs="+", metavar="FILE", help="summary.json of builds"
    )
    options = parser.parse_args(arguments)
    if (options.folder is None) == (options.markdown is None):
        parser.error("give the folder of a report, or --markdown with summary.json files")
    try:
        if options.markdown is not None:
            print(markdown(options.markdown), end="")
        else:
            print(rebuild(options.folder))
    except (ReportError, OSError) as error:
        return ending.refuse(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
