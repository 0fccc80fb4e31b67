"""The table of builds in README.md, from their ``summary.json`` files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lbq_hw import units
from lbq_hw.markdown import table
from lbq_hw.report.store import NONSENSE, ReportError, load

COLUMNS = (
    "board", "model", "accuracy", "host, images/s", "core, images/s", "lanes", "logic", "block RAM",
    "clock", "Fmax", "cycles",
)  # fmt: skip
_LOGIC = ("LC", "LUT")


def row(summary: dict[str, Any]) -> tuple[str, ...]:
    """One build, with the cycles that the RTL counted; the rates follow from clock and link."""
    used = summary["resources"]
    return (
        summary["board"],
        summary["model"],
        f"{summary['accuracy']:.2f} %",
        units.three_digits(summary["images_per_second"]),
        units.three_digits(summary["images_per_second_core"]),
        str(summary["lanes"]),
        next(f"{used[kind]:,} {kind}" for kind in _LOGIC if kind in used),
        str(used["EBR"]),
        units.megahertz(summary["clock_hz"]),
        f"{summary['fmax_hz'] / 1e6:.1f} MHz",
        f"{summary['cycles']:,.0f}",
    )


def markdown(files: Sequence[Path]) -> str:
    """One line per file. Each build must have been simulated and placed, and have met its clock."""
    rows = []
    for file in files:
        try:
            summary = load(file)
            for key in ("fits", "timing_met", "bit_exact"):
                if summary[key] is not True:
                    raise ReportError(f"{file} must have {key} true, not {summary[key]!r}")
            rows.append(row(summary))
        except ReportError:
            raise
        except (OSError, *NONSENSE) as error:
            raise ReportError(f"{file} is not a summary of a build ({error})") from error
    return table(COLUMNS, rows, words=(0, 1))
