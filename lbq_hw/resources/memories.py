"""Memories of the design, and the blocks of a fabric that hold them: counted, as Yosys would."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lbq_hw.boards import Board
from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions

SPRAM_ROWS, SPRAM_BITS = 1 << 14, 16

# Depth and width of one block; how many bits it can write under one enable; Yosys's price of it.
_SHAPES = {
    "ice40": ((256, 16), (512, 8), (1024, 4), (2048, 2)),
    "ecp5": ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)),
    "gowin": ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)),
}
# Letters of a device's name that decide what a core is made of: iCE40UP has single-port RAMs.
_KIND = {"ice40": 7, "ecp5": 4, "gowin": 2}
_OF_UNITS = ("core.neurons.", "core.logits")
_FIXED: dict[tuple[CoreConfig, tuple[Any, ...]], tuple[Memory, ...]] = {}
_GRANULE = {"ice40": 1, "ecp5": 9, "gowin": 9}
_BLOCK_COST = {
    "ice40": 64,
    "ecp5": 127,
    "gowin": 128,
}  # an ECP5 has 128 too, but there block RAM wins a tie
_SMALL_COST = {"ecp5": 4, "gowin": 8}  # price of 16 x 4 bits in logic, where it can be memory


@dataclass(frozen=True, kw_only=True)
class Memory:
    """One memory of the design: a write enables `granule` bits, reads of it are `clocked`; `style`
    is what the tools are told: "block" for a block RAM, "distributed" for logic, or "".
    """

    name: str
    depth: int
    width: int
    granule: int
    clocked: bool = True
    style: str = ""


def memories(config: CoreConfig, board: Board) -> tuple[Memory, ...]:
    """Every memory of the design on a board, from its elaboration: what Yosys will see.

    Single-port RAMs are instances already, and not among them. Boards whose device begins with the
    same letters and whose SDRAMs have the same geometry have the same memories, so that the design
    is elaborated for one of them alone: it takes most of the time of sizing.
    """
    found = _elaborated(config, _Board(kind=_kind(config, board), board=board))
    _FIXED[config.with_(units=1), _kind(config, board)] = tuple(
        memory for memory in found if not memory.name.startswith(_OF_UNITS)
    )
    return found


def fixed_blocks(config: CoreConfig, board: Board) -> int:
    """Block RAMs, at least, by what a core with another number of neuron units was found to have
    beside those of its neurons; 0 if none was elaborated yet.
    """
    known = _FIXED.get((config.with_(units=1), _kind(config, board)), ())
    return sum(blocks(memory, board.family or "") for memory in known)


def _kind(config: CoreConfig, board: Board) -> tuple[Any, ...]:
    """What the memories of a core depend on beside the core."""
    chip = board.chip if config.external else None
    geometry = chip and (chip.data_bits, chip.row_bits, chip.column_bits, chip.bank_bits)
    return board.device[: _KIND[board.family or ""]], geometry


@dataclass(frozen=True)
class _Board:
    """A board that is equal to every other of its kind."""

    kind: tuple[Any, ...]
    board: Board = field(compare=False)


@lru_cache(maxsize=2048)
def _elaborated(config: CoreConfig, any_board: _Board) -> tuple[Memory, ...]:
    from amaranth.hdl import Fragment, Shape
    from amaranth.hdl._mem import MemoryInstance

    from lbq_hw.core.system import System

    found = []

    def walk(fragment: Any, path: tuple[str, ...]) -> None:
        if isinstance(fragment, MemoryInstance):
            ports, name = fragment._write_ports, ".".join(path)
            width = Shape.cast(fragment._data.shape).width
            granule = ports[0]._granularity if ports else width
            found.append(
                Memory(
                    name=name,
                    depth=fragment._data.depth,
                    width=width,
                    granule=min(width, weight_granule(config))
                    if name.startswith("core.lanes.") and not config.external
                    else granule,
                    clocked=all(port._domain != "comb" for port in fragment._read_ports),
                    style=fragment._attrs.get("ram_style", ""),
                )
            )
        for inner, name, *_ in fragment.subfragments:
            walk(inner, (*path, str(name)))

    board = any_board.board
    chip = board.chip if config.external else None
    system = System(config, clock_hz=board.target_hz, baud=board.baud, chip=chip)
    walk(Fragment.get(system, board.make_platform()), ())
    return tuple(found)


def blocks(memory: Memory, family: str) -> int:
    """Block RAMs of one memory: the least over the shapes of a block, 0 if logic is cheaper."""
    if not memory.clocked or memory.style == "distributed":
        return 0
    counts = [
        -(-memory.depth // depth) * _columns(memory, width, _GRANULE[family])
        for depth, width in _SHAPES[family]
    ]
    pays = _BLOCK_COST[family] * min(counts) < logic_cost(memory, family)
    return min(counts) if memory.style == "block" or pays else 0


def _columns(memory: Memory, width: int, byte: int) -> int:
    """Blocks of a width side by side, with one write enable per byte. Bits of one enable take whole
    bytes, in one block or two: what they leave of the last one is lost.
    """
    if byte == 1 or memory.granule == memory.width:
        return -(-memory.width // width)
    granules, bytes_each = memory.width // memory.granule, -(-memory.granule // byte)
    if width < byte:
        return granules * -(-memory.granule // width)
    return -(-granules * bytes_each // (width // byte))


def weight_memories(config: CoreConfig) -> list[Memory]:
    """The memories of the weights, if no single-port RAM holds them: as in `_elaborated`, but for
    their names.
    """
    c, granule = config, weight_granule(config)
    if c.external or not c.spread:
        width, count = c.lanes * c.weight_bits, 1 + c.pairs
        depth = c.weight_rows // count
        return [Memory(name="weights", depth=depth, width=width, granule=granule)] * count
    from lbq_hw.core.memory.far_rows import lanes_a_slice, row_banks

    lanes = min(c.lanes, lanes_a_slice(c.weight_rows, c.weight_bits))
    width = lanes * c.weight_bits
    return [
        Memory(name=f"weights_{first}", depth=depth, width=width, granule=min(width, granule))
        for first, depth in row_banks(c.weight_rows)
    ] * (c.lanes // lanes)


def weight_granule(config: CoreConfig) -> int:
    """Bits of a weight row that are written together: the lanes in one slice of the host; all, if
    the rows come from external memory.
    """
    if config.external:
        return config.lanes * config.weight_bits
    return min(config.lanes, regions.weight_slice_lanes(config)) * config.weight_bits


def logic_cost(memory: Memory, family: str) -> int:
    """Its price without block RAMs: a Gowin keeps it in registers unless told not to."""
    small = _SMALL_COST.get(family, 0)
    if not small or (family == "gowin" and memory.style != "distributed"):
        return memory.depth * memory.width
    return small * -(-memory.depth // 16) * -(-memory.width // 4)


def sprams(config: CoreConfig, board: Board) -> int:
    """Single-port RAMs that hold the weights; 0 where they do not, or there are none."""
    lane_bits = -(-config.weight_bits // 4) * 4
    columns = -(-config.lanes * lane_bits // SPRAM_BITS)
    needed = columns * -(-config.weight_rows // SPRAM_ROWS)
    return needed if needed <= board.sprams else 0
