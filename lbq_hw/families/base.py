"""The interface of an FPGA family. docs/families.md says how to add a family."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from lbq_hw.tools import Tool

if TYPE_CHECKING:
    from lbq_hw.boards import Board
    from lbq_hw.resources.memories import Memory

__all__ = ["MHZ", "PLL", "Family", "FamilyError", "Limits", "SinglePort", "Tried", "installed"]

MHZ = 1_000_000
Tried = tuple[Fraction, Fraction, Fraction, dict[str, int]]
"""A setting of a PLL: phase detector, oscillator and output in Hz, and its parameters."""


class FamilyError(ValueError):
    """A family that does not exist, or lacks something; one sentence that says what to do."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds in MHz, inclusive: the input, the phase detector, the oscillator, the output."""

    input: tuple[float, float]
    detector: tuple[float, float]
    oscillator: tuple[float, float]
    output: tuple[float, float]

    def allow(self, detector: Fraction, oscillator: Fraction, output: Fraction) -> bool:
        pairs = (
            (self.detector, detector),
            (self.oscillator, oscillator),
            (self.output, output),
        )
        return all(low * MHZ <= value <= high * MHZ for (low, high), value in pairs)


@dataclass(frozen=True, kw_only=True)
class PLL:
    """A kind of PLL: its limits, and a `search` that yields settings for an input and a target in
    Hz. `pad`: the PLL takes its input directly from a pin, which can then feed nothing else.
    """

    limits: Limits
    search: Callable[[int, int, Limits], Iterator[Tried]]
    pad: bool = False


@dataclass(frozen=True, kw_only=True)
class SinglePort:
    """Single-port RAMs that can hold the weights, on some `devices`. A RAM has `rows` of `bits`;
    `enable` bits share a write enable. A bitstream cannot initialize it.
    """

    devices: tuple[str, ...]
    rows: int
    bits: int
    enable: int

    def shape(self, *, rows: int, lanes: int, weight_bits: int) -> tuple[int, int]:
        """The number of RAMs in width and in depth that hold `rows` rows of weights."""
        return -(-lanes * self.lane_bits(weight_bits) // self.bits), -(-rows // self.rows)

    def lane_bits(self, weight_bits: int) -> int:
        """Bits that a lane takes, rounded up because each lane has its own write enables."""
        return -(-weight_bits // self.enable) * self.enable


class Family:
    """One family of FPGAs: tools and their command lines, RAMs and their costs, PLLs.

    A subclass defines the attributes of `ENTRIES`, and may override the others. Code that needs
    Amaranth (the PLL's primitive, the reset, pins, instantiated RAMs) is in ``core/fabric``, the
    bitstream decoder in ``bitstream``, each in a file with the family's name.
    """

    name: str
    title: str
    platform: str
    devices: tuple[str, ...]
    placer: Tool
    packer: Tool
    constraints: str
    placed: str
    bitstream: str
    plls: ClassVar[dict[str, PLL]]
    cells: ClassVar[dict[str, tuple[str, ...]]]
    estimated: ClassVar[dict[str, str]]
    block_shapes: tuple[tuple[int, int], ...]
    block_enable: int
    block_cost: int

    ENTRIES: ClassVar = {
        "name": "what a board's file calls it",
        "title": "what its maker calls it",
        "platform": "the class of amaranth.vendor that its platforms derive from",
        "devices": "how the names of its devices begin",
        "placer": "the Tool that places and routes",
        "packer": "the Tool that writes the bitstream",
        "constraints": "the suffix of the file of its pins",
        "placed": "the suffix of the routed design",
        "bitstream": "the suffix of the bitstream",
        "plls": "its PLLs by the names that boards use",
        "cells": "nextpnr's names of its cells by kind: the first says how many there are",
        "estimated": "the fields of a Board that have the number of cells of a kind",
        "block_shapes": "depth and width of a block RAM in each of its shapes",
        "block_enable": "how many bits a block RAM can write under one enable",
        "block_cost": "the price of a block RAM in Yosys's table of memories",
        "synth": "the Yosys command for a board",
        "place": "nextpnr's arguments for a netlist, pins and an output",
        "pack": "the packer's arguments",
        "named": "a platform's device with its package, and nextpnr's options for it",
    }
    """The attributes that every family must define, with their meanings."""

    platform_options: ClassVar[dict[str, str]] = {}
    """Keyword arguments for the constructor of a platform."""
    routed = ""
    """The file of the routed netlist, if `place` writes one."""
    series_letters = 4
    """Number of letters of a device's name that determine its primitives."""
    single_port: SinglePort | None = None
    register_luts = 1.15
    """Look-up tables per register of a door, approximately."""
    few_cells = False
    """Logic is scarce: a core has a cycle counter and no other counters."""
    svf = False
    """The packer can write an SVF."""
    programs: tuple[Tool, ...] = ()
    """Programs that load bitstreams into this family alone."""
    no_cmsisdap = ""
    """The version of openFPGALoader that cannot load this family through CMSIS-DAP."""

    def __init__(self) -> None:
        for entry, meaning in self.ENTRIES.items():
            if getattr(self, entry, None) is None:
                raise FamilyError(
                    f"the family {getattr(self, 'name', type(self).__name__)} must have {entry}, "
                    f"{meaning}: see docs/families.md"
                )

    synth: Callable[[Board, bool], str]
    """The Yosys command for a board; the flag says that the core takes nearly all block RAMs."""
    place: Callable[[str, str, str], list[str]]
    pack: Callable[[Board, str, str], list[str]]
    named: Callable[[Any], tuple[str, str]]

    def crowded(self, seed: int) -> list[str]:
        """Additional options of nextpnr for a core that takes nearly all block RAMs."""
        del seed
        return []

    def in_logic(self, depth: int) -> bool:
        """Whether a memory of this depth goes into logic if larger memories fill the block RAMs."""
        del depth
        return False

    def logic_cost(self, memory: Memory) -> int:
        """The cost of a memory outside block RAMs: registers, unless LUTs can be memory."""
        return memory.depth * memory.width

    def baked(self, platform: Any) -> bool:
        """Whether the weights can be part of the bitstream."""
        return self.single_port is None or platform.device not in self.single_port.devices

    def pins(self, board: Board, platform: Any) -> frozenset[str] | None:
        """Names of the pins of a platform's device; None if no wheel has them."""
        del board, platform
        return None

    def check_place(self, options: str) -> None:
        """FamilyError if a board's nextpnr options lack an option that Amaranth cannot give."""
        del options

    def is_pad(self, pin: str) -> bool:
        """Whether this is the name of a pad without a pin of the package."""
        del pin
        return False

    def words(self) -> dict[str, str]:
        """Names of files and tools, for the steps of a build."""
        suffixes = {
            name: getattr(self, name)
            for name in ("name", "constraints", "placed", "bitstream", "routed")
        }
        tools = {"placer": self.placer.name, "packer": self.packer.name}
        return suffixes | tools | {"distribution": self.packer.distribution}

    @property
    def block_bits(self) -> int:
        """Bits of a block RAM."""
        return max(depth * width for depth, width in self.block_shapes)


def installed(package: str, path: str) -> Path | None:
    """A file of an installed package; None if either is missing."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).parent / path
    return file if file.is_file() else None
