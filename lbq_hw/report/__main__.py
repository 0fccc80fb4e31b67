"""Make a report's page anew from its JSON files: ``python -m lbq_hw.report FOLDER``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lbq_hw.report import ReportError, rebuild


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lbq_hw.report",
        description="Make report.html from the JSON files beside it.",
    )
    parser.add_argument("folder", type=Path, help="the folder of a report")
    options = parser.parse_args(arguments)
    try:
        print(rebuild(options.folder))
    except (ReportError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
