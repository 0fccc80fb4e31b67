"""The tables as documentation: ``python -m lbq_hw.isa`` prints docs/isa.md."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType

from lbq_hw import isa
from lbq_hw.commands.parser import Parser
from lbq_hw.config import CoreConfig
from lbq_hw.isa import door, link, regions
from lbq_hw.isa.codes import Code
from lbq_hw.isa.record import SLICE, Record
from lbq_hw.isa.regions import Register
from lbq_hw.markdown import table


def markdown(config: CoreConfig) -> str:
    """The page, with the widths of `config`."""
    return "\n".join(_lines(config)) + "\n"


def _lines(config: CoreConfig) -> Iterator[str]:
    yield "# Records, addresses, frames"
    yield ""
    yield (
        "The interface of compiler, core and host. `python -m lbq_hw.isa` prints this page from "
        "the tables that all three use; `python -m lbq_hw.compiler --model mnist` prints "
        "the records of a network. Bits and ranges below are those of a default `CoreConfig`: a "
        "field has the bits that its largest legal value needs. The [glossary](glossary.md) "
        "explains the words, [architecture.md](architecture.md) the blocks."
    )
    yield ""
    yield "## The walk"
    yield ""
    yield from _prose(isa, "A program is")
    yield ""
    yield "## Records"
    yield ""
    yield (
        f"The host writes a record in slices of {SLICE} bits, lowest first. All numbers are "
        "unsigned unless the range says otherwise."
    )
    yield ""
    for record in (*isa.TABLES.values(), isa.PARAM):
        yield from _record(record, config)
    yield "## Address map"
    yield ""
    yield from _addresses(config)
    yield "## Registers"
    yield ""
    yield from _registers(regions.REGISTERS.values())
    yield "Cores with external memory have these, too:"
    yield ""
    yield from _registers(regions.MEMORY_REGISTERS.values())
    yield "## Errors"
    yield ""
    yield (
        "The register `error` keeps the first since the last clear, `error_at` the index of the "
        "illegal record, or else the layer that ran."
    )
    yield ""
    yield from _codes("code", isa.Error)
    yield "## Link"
    yield ""
    yield from _prose(link, "A frame is")
    yield ""
    yield (
        f"A frame carries at most {link.FRAME_WORDS} data words of {SLICE} bits. The address "
        f"`0x{link.BAKED:08X}` is answered by the link itself: a tag of what the bitstream put "
        "into the memories, 0 once a table, weight or parameter has been written."
    )
    yield ""
    for record in (link.REQUEST, link.REPLY):
        yield from _record(record, config)
    yield "### Door"
    yield ""
    yield from _prose(door, "A WRITE to")
    yield ""
    yield (
        f"`DOOR` is `0x{door.DOOR:08X}`, `CYCLES` {door.CYCLES}, `NUMBER` {door.NUMBER} and "
        f"`NUMBER_BITS` {door.NUMBER_BITS}. Cores that were built with `--no-door` lack it."
    )
    yield ""
    yield "### Commands"
    yield ""
    yield from _codes("command", link.Command)
    yield "### Statuses"
    yield ""
    yield from _codes("status", link.Status)


def _prose(module: ModuleType, start: str) -> Iterator[str]:
    """A module's docstring from `start` on; what it marks as code is indented already."""
    text = inspect.getdoc(module) or ""
    for line in text[text.index(start) :].splitlines():
        yield line[:-1] if line.endswith("::") else line


def _record(record: Record, config: CoreConfig) -> Iterator[str]:
    size = f"{record.width(config)} bits"
    slices = record.slices(config)
    yield f"### {record.name.upper()}: {size}, {slices} slice{'s' if slices > 1 else ''}"
    yield ""
    yield record.meaning
    yield ""
    rows = []
    for name, slot in record.slots(config).items():
        field = slot.field
        place = f"{slot.offset + slot.width - 1}:{slot.offset}" if slot.width > 1 else slot.offset
        legal = f"{field.least(config)}..{field.largest(config)}"
        legal = "0" if legal == "0..0" else legal
        rows.append((place, f"`{name}`", slot.width, legal, field.meaning))
    yield from _table(("bits", "field", "width", "legal", "meaning"), rows, "llrll")
    for first, last in record.ordered:
        yield f"`{first}` must not be above `{last}`."
        yield ""


def _registers(registers: Iterable[Register]) -> Iterator[str]:
    rows = ((r.address, f"`{r.name}`", r.access, r.meaning) for r in registers)
    yield from _table(("address", "name", "access", "meaning"), rows, "rlll")


def _addresses(config: CoreConfig) -> Iterator[str]:
    yield (
        f"An address names one slice of {SLICE} bits: the region in bits {regions.SHIFT} and up, "
        "then the entry, then the slice of the entry, in as many bits as the number of its slices "
        "needs. The slices of a plane word and of a parameter are written in order; a parameter "
        "is stored with its last slice. While a program runs the host may only read registers. "
        "Only cores with external memory have the region MEMORY; in such a core the host writes "
        "planes and this memory, and a tape writes the rest."
    )
    yield ""
    large = config.with_external(SLICE)
    rows = []
    for region in regions.Region:
        core = config if region in regions.reached(config) else large
        entries, slices = regions.entries(core), regions.slices(core)
        first = regions.address(core, region, 0)
        last = regions.address(core, region, entries[region] - 1, slices[region] - 1)
        access = regions.ACCESS[region]
        rows.append(
            (region.value, region.name, f"`0x{first:08X}`", f"`0x{last:08X}`", entries[region],
             slices[region], access)
        )  # fmt: skip
    head = ("region", "name", "first address", "last address", "entries", "slices", "access")
    yield from _table(head, rows, "rlllrrl")


def _codes(title: str, kind: type[Code]) -> Iterator[str]:
    rows = ((code.value, f"`{code.name}`", code.meaning) for code in kind)
    yield from _table((title, "name", "meaning"), rows, "rll")


def _table(head: Sequence[str], rows: Iterable[Sequence[object]], alignment: str) -> Iterator[str]:
    words = [column for column, side in enumerate(alignment) if side == "l"]
    yield from table(head, rows, words=words).splitlines()
    yield ""


def main(argv: Sequence[str] | None = None) -> int:
    Parser(
        prog="python -m lbq_hw.isa",
        description="Print docs/isa.md: the records, addresses, registers, errors and frames of a "
        "default core.",
    ).parse_args(argv)
    print(markdown(CoreConfig()), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
