"""What a core takes of a fabric, before synthesis: logic, memory blocks and its fastest clock.

Logic and clock are linear models of a few sizes of the core, fitted by least squares to what place
and route reported for real builds (`measured.json`); memories are counted. Everything here is an
estimate: ``python -m lbq_hw.resources`` prints it beside the measurements.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boards
from boards import Board
from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.report import logs

MEASURED = Path(__file__).with_name("measured.json")
SPRAM_ROWS, SPRAM_BITS = 1 << 14, 16

# Depth and width of one block; how many bits it can write under one enable; Yosys's price of it.
_SHAPES = {
    "ice40": ((256, 16), (512, 8), (1024, 4), (2048, 2)),
    "ecp5": ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)),
    "gowin": ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)),
}
_GRANULE = {"ice40": 1, "ecp5": 9, "gowin": 9}
_BLOCK_COST = {"ice40": 64, "ecp5": 128, "gowin": 128}
_SMALL_COST = {"ice40": 0, "ecp5": 4, "gowin": 0}  # of 16 x 4 bits in logic; 0: a bit costs 1


@dataclass(frozen=True, kw_only=True)
class Memory:
    """One memory of the design: a write enables `granule` bits, reads of it are `clocked`."""

    name: str
    depth: int
    width: int
    granule: int
    clocked: bool = True


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a core is thought to take. `fmax_hz` is 0 where nothing was measured."""

    luts: int
    block_rams: int
    sprams: int
    fmax_hz: float

    def short(self, board: Board) -> list[str]:
        """What the board has too little of; one sentence each."""
        pairs = (
            ("LUTs", self.luts, board.luts),
            ("block RAMs", self.block_rams, board.block_rams),
            ("single-port RAMs", self.sprams, board.sprams),
        )
        return [
            f"the core needs about {needed:,} {what}, {board.title} has {have:,} "
            f"({needed - have:,} short)"
            for what, needed, have in pairs
            if needed > have
        ]


@lru_cache(maxsize=512)
def memories(config: CoreConfig, board: Board) -> tuple[Memory, ...]:
    """Every memory of the design on a board, from its elaboration: what Yosys will see.

    Single-port RAMs are instances already, and not among them.
    """
    from amaranth.hdl import Fragment, Shape
    from amaranth.hdl._mem import MemoryInstance

    from lbq_hw.core.system import System

    found = []

    def walk(fragment: Any, path: tuple[str, ...]) -> None:
        if isinstance(fragment, MemoryInstance):
            ports = fragment._write_ports
            width = Shape.cast(fragment._data.shape).width
            found.append(
                Memory(
                    name=".".join(path),
                    depth=fragment._data.depth,
                    width=width,
                    granule=ports[0]._granularity if ports else width,
                    clocked=all(port._domain != "comb" for port in fragment._read_ports),
                )
            )
        for inner, name, *_ in fragment.subfragments:
            walk(inner, (*path, str(name)))

    system = System(config, clock_hz=board.target_hz, baud=board.baud)
    walk(Fragment.get(system, board.make_platform()), ())
    return tuple(found)


def blocks(memory: Memory, family: str) -> int:
    """Block RAMs of one memory: the least over the shapes of a block, 0 if logic is cheaper."""
    if not memory.clocked:
        return 0
    byte = _GRANULE[family]
    counts = []
    for depth, width in _SHAPES[family]:
        if memory.granule < memory.width and memory.granule < byte:
            width = max(width // byte, 1) * memory.granule  # an enable a byte, used in part
        counts.append(-(-memory.depth // depth) * -(-memory.width // width))
    return min(counts) if _BLOCK_COST[family] * min(counts) < _logic_cost(memory, family) else 0


def _logic_cost(memory: Memory, family: str) -> int:
    small = _SMALL_COST[family]
    if not small:
        return memory.depth * memory.width
    return small * -(-memory.depth // 16) * -(-memory.width // 4)


def sprams(config: CoreConfig, board: Board) -> int:
    """Single-port RAMs that hold the weights; 0 where they do not, or there are none."""
    lane_bits = -(-config.weight_bits // 4) * 4
    columns = -(-config.lanes * lane_bits // SPRAM_BITS)
    needed = columns * -(-config.weight_rows // SPRAM_ROWS)
    return needed if needed <= board.sprams else 0


def least(config: CoreConfig, board: Board) -> Estimate:
    """A lower bound that needs no elaboration: logic without small memories, large memories."""
    assert board.family is not None
    c, family = config, board.family
    single = sprams(c, board)
    large = [Memory(name="planes", depth=c.plane_words, width=c.word, granule=c.granule)]
    if not single:
        lanes = c.lanes * c.weight_bits
        large.append(
            Memory(name="weights", depth=c.weight_rows, width=lanes, granule=c.weight_bits)
        )
    return Estimate(
        luts=round(float(_logic(c, 0) @ _model(family).luts)),
        block_rams=sum(blocks(memory, family) for memory in large),
        sprams=single,
        fmax_hz=_fmax(c, board),
    )


def estimate(config: CoreConfig, board: Board) -> Estimate:
    """What the core takes on a board with a fabric."""
    assert board.family is not None
    counts = [blocks(memory, board.family) for memory in memories(config, board)]
    return Estimate(
        luts=round(float(_logic(config, _small(config, board)) @ _model(board.family).luts)),
        block_rams=sum(counts),
        sprams=sprams(config, board),
        fmax_hz=_fmax(config, board),
    )


def _fmax(config: CoreConfig, board: Board) -> float:
    period = _model(board.family or "").period
    return 0.0 if period is None else 1e9 / float(_speed(config) @ period)


@dataclass(frozen=True, kw_only=True)
class _Model:
    luts: NDArray[np.float64]
    period: NDArray[np.float64] | None


def _small(config: CoreConfig, board: Board) -> float:
    """The price of the memories that become logic."""
    family = board.family or ""
    stores = memories(config, board)
    return sum(_logic_cost(memory, family) for memory in stores if not blocks(memory, family))


def _logic(config: CoreConfig, small: float) -> NDArray[np.float64]:
    """Sizes that logic grows with."""
    c = config
    return np.array(
        [
            1.0,
            sum(record.width(c) for record in isa.TABLES.values()),
            c.lanes * (c.acc_bits + c.weight_bits),
            c.units * c.membrane_bits * (c.planes + c.decay_bits / 2 + 2),
            c.word * c.word_log2,
            small,
        ]
    )


def _speed(config: CoreConfig) -> NDArray[np.float64]:
    """Sizes that a clock period grows with."""
    return np.array([1.0, config.lane_log2, config.membrane_bits])


@cache
def measured() -> list[dict[str, Any]]:
    """Builds that place and route has finished."""
    return json.loads(MEASURED.read_text(encoding="utf-8"))["builds"]


@cache
def _model(family: str) -> _Model:
    points = [point for point in measured() if boards.find(point["board"]).family == family]
    configs = [CoreConfig.from_dict(point["config"]) for point in points]
    luts = _nonnegative(
        [
            _logic(config, _small(config, boards.find(point["board"])))
            for config, point in zip(configs, points, strict=True)
        ],
        [point["luts"] for point in points],
    )
    timed = [
        (_speed(config), 1e3 / point["fmax_mhz"])
        for config, point in zip(configs, points, strict=True)
        if point.get("fmax_mhz")
    ]
    period = _nonnegative([row for row, _ in timed], [value for _, value in timed])
    return _Model(luts=luts, period=period if timed else None)


def _nonnegative(rows: Sequence[NDArray[np.float64]], values: Sequence[float]) -> Any:
    """Least squares of relative errors with coefficients of at least 0, by leaving some out."""
    if not rows:
        return np.zeros(0)
    table, wanted = np.array(rows), np.array(values)
    table = table / wanted[:, None]
    kept = list(range(table.shape[1]))
    while True:
        found = np.linalg.lstsq(table[:, kept], np.ones(len(wanted)), rcond=None)[0]
        if (found >= 0).all():
            break
        del kept[int(found.argmin())]
    full = np.zeros(table.shape[1])
    full[kept] = found
    return full


def compare(points: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Estimate and measurement of each build, side by side."""
    rows = []
    for point in points:
        config, board = CoreConfig.from_dict(point["config"]), boards.find(point["board"])
        guess = estimate(config, board)
        rows.append(
            {
                "board": board.name,
                "lanes": config.lanes,
                "estimate": asdict(guess),
                "luts": point["luts"],
                "block_rams": point["block_rams"],
                "fmax_mhz": point.get("fmax_mhz"),
            }
        )
    return rows


def add(folder: Path) -> None:
    """Join a finished build to the measurements; one of the same core and board is replaced."""
    core, placed = (
        json.loads((folder / name).read_text(encoding="utf-8"))
        for name in ("core.json", "place.json")
    )
    used = {resource.kind: resource.used for resource in logs.resources(placed)}
    clocks = logs.timing(placed).clocks
    point = {
        "board": core["board"],
        "config": core["config"],
        "luts": used.get("LC") or used["LUT"],
        "block_rams": used.get("EBR", 0),
        "fmax_mhz": round(min(clock.fmax_hz for clock in clocks) / 1e6, 1),
    }
    known = [
        other
        for other in measured()
        if (other["board"], other["config"]) != (point["board"], point["config"])
    ]
    known.append(point)
    known.sort(key=lambda other: (other["board"], other["config"]["lanes"], other["luts"]))
    text = json.dumps({"builds": known}, indent=1, sort_keys=True) + "\n"
    MEASURED.write_text(text, encoding="utf-8")
    measured.cache_clear()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lbq_hw.resources", description="The estimates beside the measurements."
    )
    parser.add_argument(
        "--add", type=Path, nargs="+", default=[], metavar="DIR", help="finished builds to learn"
    )
    for folder in parser.parse_args(argv).add:
        add(folder)
    print("board          lanes     LUTs est. / seen  block RAMs   Fmax est. / seen, MHz")
    for row in compare(measured()):
        guess = row["estimate"]
        print(
            f"{row['board']:14} {row['lanes']:5} {guess['luts']:10,} / {row['luts']:6,}  "
            f"{guess['block_rams']:4} / {row['block_rams']:3}   "
            f"{guess['fmax_hz'] / 1e6:6.1f} / {row['fmax_mhz'] or 0:.1f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
