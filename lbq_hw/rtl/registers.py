"""The register map, as Markdown and SystemRDL, from the tables of `lbq_hw.isa`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lbq_hw.config import CoreConfig
from lbq_hw.isa import Error, bus, regions
from lbq_hw.isa.regions import Region, Register
from lbq_hw.markdown import table

_ACCESS = {"r": "r", "w": "w", "rw": "rw"}


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A register and its byte address."""

    register: Register
    at: int


@dataclass(frozen=True, kw_only=True)
class Window:
    """A memory of the core: `words` of 32 bits from the byte address `at` on."""

    region: Region
    at: int
    words: int
    entries: int
    slices: int
    access: str


def placed(config: CoreConfig) -> list[Placed]:
    """All registers, by their addresses."""
    core = [
        Placed(register=register, at=bus.address(config, register.address))
        for register in bus.registers(config).values()
    ]
    return core + [
        Placed(register=register, at=bus.register_address(config, name))
        for name, register in bus.REGISTERS.items()
    ]


def windows(config: CoreConfig) -> list[Window]:
    """The memories of the core."""
    found = []
    for region in bus.reached(config)[1:]:
        slices, entries = regions.slices(config)[region], regions.entries(config)[region]
        access = regions.ACCESS[region]
        if config.external and access == "w":
            continue  # the tape writes this region
        found.append(
            Window(
                region=region,
                at=bus.address(config, regions.address(config, region, 0)),
                words=entries << (slices - 1).bit_length(),
                entries=entries,
                slices=slices,
                access=access,
            )
        )
    return found


def markdown(config: CoreConfig, name: str) -> str:
    """The register map as a Markdown page."""
    rows = [(f"`0x{one.at:05X}`", f"`{one.register.name}`", one.register.access,
             one.register.meaning) for one in placed(config)]  # fmt: skip
    memories = [(f"`0x{one.at:05X}`", one.region.name, one.access, one.entries, one.slices)
                for one in windows(config)]  # fmt: skip
    codes = [(code.value, f"`{code.name}`", code.meaning) for code in Error]
    words = (0, 1, 2, 3)
    return "\n".join(
        (
            f"# Registers of the core for {name}",
            "",
            f"Addresses count bytes; the core takes {bus.address_bits(config)} bits of them. Every "
            "access is one of 32 bits.",
            "",
            table(("address", "name", "access", "meaning"), rows, words=words),
            "## Memories",
            "",
            "An entry takes as many words of 32 bits as it has slices, rounded up to a power of "
            "two. While a run is under way, only registers can be read. The driver writes what a "
            "program needs; an input is best sent through the register `pixels` or the stream.",
            "",
            table(("address", "name", "access", "entries", "slices"), memories, words=words[:3]),
            "## Errors",
            "",
            table(("code", "name", "meaning"), codes, words=(1, 2)),
        )
    )


def systemrdl(config: CoreConfig, name: str) -> str:
    """The register map in SystemRDL 2.0."""
    return "\n".join(_rdl(config, name)) + "\n"


def _rdl(config: CoreConfig, name: str) -> Iterator[str]:
    yield "addrmap lbq_core {"
    yield f'    name = "LBQ core for {name}";'
    yield "    default regwidth = 32;"
    yield "    default accesswidth = 32;"
    for one in placed(config):
        access = _ACCESS[one.register.access]
        meaning = one.register.meaning.replace('"', "'")
        hardware = "r" if access == "w" else "rw"
        yield (
            f'    reg {{ desc = "{meaning}"; field {{ sw = {access}; hw = {hardware}; }} '
            f"value[32] = 0; }} {one.register.name}_reg @ 0x{one.at:X};"
        )
    for window in windows(config):
        yield (
            f"    external mem {{ memwidth = 32; mementries = {window.words}; "
            f"sw = {_ACCESS[window.access]}; }} {window.region.name.lower()} @ 0x{window.at:X};"
        )
    yield "};"
