"""Counts the memories of a design and the block RAMs that they take, as Yosys maps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lbq_hw import families
from lbq_hw.boards import Board
from lbq_hw.config import CoreConfig
from lbq_hw.families import Family
from lbq_hw.isa import regions

_OF_UNITS = ("core.neurons.", "core.logits")
_FIXED: dict[tuple[CoreConfig, tuple[Any, ...]], tuple[Memory, ...]] = {}


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
    """Every memory of the design on a board, from its elaboration, as Yosys will see it.

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
    """A lower bound of the block RAMs: those of an elaborated core that differs only in its neuron
    units, without its neurons' memories; 0 if none was elaborated yet.
    """
    known = _FIXED.get((config.with_(units=1), _kind(config, board)), ())
    return sum(blocks(memory, families.of(board)) for memory in known)


def _kind(config: CoreConfig, board: Board) -> tuple[Any, ...]:
    """Everything except the core on which its memories depend."""
    chip = board.chip if config.external else None
    geometry = chip and (chip.data_bits, chip.row_bits, chip.column_bits, chip.bank_bits)
    return board.device[: families.of(board).series_letters], geometry


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


def blocks(memory: Memory, family: Family) -> int:
    """Block RAMs of one memory: the least over the shapes of a block, 0 if logic is cheaper."""
    if not memory.clocked or memory.style == "distributed":
        return 0
    counts = [
        -(-memory.depth // depth) * _columns(memory, width, family.block_enable)
        for depth, width in family.block_shapes
    ]
    pays = family.block_cost * min(counts) < family.logic_cost(memory)
    return min(counts) if memory.style == "block" or pays else 0


def _columns(memory: Memory, width: int, byte: int) -> int:
    """Blocks of a width side by side, with one write enable per byte. The bits of one write enable
    take whole bytes, in one block or two; unused bits of the last byte are lost.
    """
    if byte == 1 or memory.granule == memory.width:
        return -(-memory.width // width)
    granules, bytes_each = memory.width // memory.granule, -(-memory.granule // byte)
    if width < byte:
        return granules * -(-memory.granule // width)
    return -(-granules * bytes_each // (width // byte))


def weight_memories(config: CoreConfig) -> list[Memory]:
    """The memories of the weights, if no single-port RAM holds them: as in `_elaborated`, except
    for their names.
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


def sprams(config: CoreConfig, board: Board) -> int:
    """Single-port RAMs that hold the weights; 0 if the board has none, or if the weights are
    elsewhere.
    """
    single = families.of(board).single_port if board.sprams else None
    if single is None:
        return 0
    c = config
    columns, banks = single.shape(rows=c.weight_rows, lanes=c.lanes, weight_bits=c.weight_bits)
    return columns * banks if columns * banks <= board.sprams else 0
