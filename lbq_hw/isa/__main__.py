"""The tables as documentation: ``python -m lbq_hw.isa``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.isa import link, regions


def markdown(config: CoreConfig) -> str:
    """The tables as documentation, with the widths of `config`."""
    lines = []
    for record in (*isa.TABLES.values(), isa.PARAM, link.REQUEST, link.REPLY):
        lines += [f"### {record.name.upper()}: {record.width(config)} bits", "", record.meaning, ""]
        lines += ["| bits | field | largest | meaning |", "|---|---|--:|---|"]
        for name, slot in record.slots(config).items():
            kind = "signed" if slot.field.signed else str(slot.field.largest(config))
            place = f"{slot.offset + slot.width - 1}:{slot.offset}"
            lines.append(f"| {place} | {name} | {kind} | {slot.field.meaning} |")
        lines.append("")
    lines += ["### Registers", "", "| address | name | access | meaning |", "|--:|---|---|---|"]
    found = regions.REGISTERS.values()
    lines += [f"| {r.address} | {r.name} | {r.access} | {r.meaning} |" for r in found]
    lines += ["", "### Regions", "", "| region | number | entries | slices |", "|---|--:|--:|--:|"]
    entries, slices = regions.entries(config), regions.slices(config)
    lines += [f"| {r.name} | {r.value} | {entries[r]} | {slices[r]} |" for r in regions.Region]
    lines += ["", "### Errors", "", "| code | name |", "|--:|---|"]
    lines += [f"| {error.value} | {error.name} |" for error in isa.Error]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(
        prog="python -m lbq_hw.isa",
        description="Print the records, registers, regions and errors of a default core.",
    ).parse_args(argv)
    print(markdown(CoreConfig()), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
