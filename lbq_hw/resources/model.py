"""Logic and clock of a core, as linear models of a few of its sizes.

They are fitted by least squares, logic by family and clock by series of devices, to what place and
route has reported for the builds of `measured`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import boards, families, isa
from lbq_hw.boards import Board
from lbq_hw.config import CoreConfig
from lbq_hw.isa.record import SLICE
from lbq_hw.network.neuron import RULES
from lbq_hw.resources.measured import measured
from lbq_hw.resources.memories import Memory, blocks, memories, sprams, weight_memories


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The estimated resources of a core. `fmax_hz` is 0 if nothing was measured."""

    luts: int
    block_rams: int
    sprams: int
    fmax_hz: float

    def __add__(self, other: Estimate) -> Estimate:
        """Add the resources of other logic, which does not slow down the core."""
        return replace(
            self,
            luts=self.luts + other.luts,
            block_rams=self.block_rams + other.block_rams,
            sprams=self.sprams + other.sprams,
        )

    def short(self, board: Board) -> list[str]:
        """The resources that the board lacks, one sentence each."""
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


def least(config: CoreConfig, board: Board) -> Estimate:
    """A lower bound that needs no elaboration: logic without small memories, large memories."""
    c, family = config, families.of(board)
    single = sprams(c, board)
    large = [Memory(name="planes", depth=c.plane_words, width=c.word, granule=c.granule)]
    if not single:
        large += weight_memories(c)
    if c.partial_words:
        sums = c.units * c.partial_bits
        large.append(Memory(name="sums", depth=c.partial_words, width=sums, granule=sums))
    return Estimate(
        luts=luts_by(_luts(family.name), c, 0),
        block_rams=sum(blocks(memory, family) for memory in large),
        sprams=single,
        fmax_hz=_fmax(c, board),
    )


def estimate(config: CoreConfig, board: Board) -> Estimate:
    """The estimate of a core on a board."""
    family = families.of(board)
    counts = [blocks(memory, family) for memory in memories(config, board)]
    return Estimate(
        luts=luts_by(_luts(family.name), config, _small(config, board)),
        block_rams=sum(counts),
        sprams=sprams(config, board),
        fmax_hz=_fmax(config, board),
    )


def luts_by(coefficients: NDArray[np.float64], config: CoreConfig, small: float) -> int:
    """LUTs of a core whose small memories have this price."""
    found = round(float(_logic(config, small) @ coefficients))
    return found - _spared(config) + _expander(config)


def fmax_by(coefficients: NDArray[np.float64], config: CoreConfig) -> float:
    """The fastest clock of a core."""
    return 1e9 / float(_speed(config) @ coefficients)


def _fmax(config: CoreConfig, board: Board) -> float:
    period = _period(series_of(board))
    return 0.0 if period is None else fmax_by(period, config)


def small_of(point: Mapping[str, Any]) -> float:
    """The price of the memories that became logic in a build of `measured`, which stores it as
    ``small``, so that measured designs need not be elaborated again.
    """
    return _small(CoreConfig.from_dict(point["config"]), boards.find(point["board"]))


def _small(config: CoreConfig, board: Board) -> float:
    """The price of the memories that become logic."""
    family, stores = families.of(board), memories(config, board)
    return sum(family.logic_cost(memory) for memory in stores if not blocks(memory, family))


def _logic(config: CoreConfig, small: float) -> NDArray[np.float64]:
    """Sizes that logic grows with."""
    c = config
    return np.array(
        [
            1.0,
            _record_bits(c),
            c.lanes * (c.acc_bits + c.weight_bits),
            c.units * c.membrane_bits * (c.planes + c.decay_bits + 1 + _rule_adders(c)),
            c.word * c.word_log2,
            small,
            c.lanes * c.acc_bits if c.partial_words else 0,
            c.lanes * c.pairs,
        ]
    )


def _rule_adders(config: CoreConfig) -> int:
    """Additions of a neuron unit that not every core has."""
    return sum(rule.adders for rule in RULES if rule.optional and getattr(config, rule.ability))


def _record_bits(config: CoreConfig) -> int:
    """Bits of the records of a core with all abilities, which most measured builds had. Without an
    ability, a core saves less logic than the ability's share of these bits.
    """
    c = config
    able = c.with_(
        window=max(2, c.window),
        timesteps=max(2, c.timesteps),
        layer_paths=max(2, c.layer_paths),
        identities=1,
    )
    return sum(record.width(able) for record in isa.TABLES.values())


def _spared(config: CoreConfig) -> int:
    """LUTs of the counters and abilities that a core lacks: one per bit of a counter, and what was
    measured on 16 lanes of an iCE40 with words of 16 bits.
    """
    c = config
    lanes = 0 if c.identities else c.lanes + c.word
    return _counted(CoreConfig()) - _counted(c) + 6 * lanes


def _expander(config: CoreConfig) -> int:
    """LUTs of the expander that widens weight rows of few bits: one per bit and width, measured on
    an ECP5 with 128 lanes of 4 bits and one further width.
    """
    return len(config.narrow_bits) * config.lanes * config.weight_bits


def _counted(config: CoreConfig) -> int:
    return config.counter_bits + (config.counters - 1) * min(config.counter_bits, SLICE)


def _speed(config: CoreConfig) -> NDArray[np.float64]:
    """Sizes with which a clock period grows. The last two stand for the wires across memories that
    fill a chip: the Mbit of a `spread` core, which has registers on these wires, and the Mbit
    beyond the first of any other core.
    """
    c = config
    bits = c.plane_words * c.word + c.weight_rows * c.lanes * c.weight_bits
    bits += c.partial_words * c.units * c.partial_bits
    far, farther = (bits / 1e6, 0.0) if c.spread else (0.0, max(0.0, bits / 1e6 - 1))
    return np.array([1.0, c.lane_log2, c.membrane_bits, far, farther])


@cache
def _luts(family: str) -> NDArray[np.float64]:
    """Coefficients of a family's LUTs; if none of its builds was measured, the coefficients of all
    families.
    """
    points = [point for point in measured() if boards.find(point["board"]).family == family]
    return fitted_luts(points or measured())


def fitted_luts(points: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """Coefficients that fit the LUTs of these builds best."""
    configs = [CoreConfig.from_dict(point["config"]) for point in points]
    return _nonnegative(
        [
            _logic(config, point["small"] if "small" in point else small_of(point))
            for config, point in zip(configs, points, strict=True)
        ],
        [
            point["luts"] - point.get("former", 0) + _spared(config)
            for config, point in zip(configs, points, strict=True)
        ],
    )


@cache
def _period(series: str) -> NDArray[np.float64] | None:
    """Coefficients of the clock's period on one series of devices; None where none was measured."""
    return fitted_period(
        [point for point in measured() if series_of(boards.find(point["board"])) == series]
    )


def fitted_period(points: Sequence[Mapping[str, Any]]) -> NDArray[np.float64] | None:
    """Coefficients that fit the clock periods of these builds best."""
    timed = [
        (_speed(CoreConfig.from_dict(point["config"])), 1e3 / point["fmax_mhz"])
        for point in points
        if point["fmax_mhz"]
    ]
    return _nonnegative([row for row, _ in timed], [value for _, value in timed]) if timed else None


def fastest_hz(board: Board) -> float:
    """The fastest clock that was measured on devices of a board's series; 0 if none was."""
    seen = [
        1e6 * point["fmax_mhz"]
        for point in measured()
        if point["fmax_mhz"] and series_of(boards.find(point["board"])) == series_of(board)
    ]
    return max(seen, default=0.0)


def series_of(board: Board) -> str:
    """The start of a device's name, which devices of about the same speed share: iCE40UP5K, LFE5U,
    GW1NR.
    """
    return board.device.partition("-")[0]


def _nonnegative(rows: Sequence[NDArray[np.float64]], values: Sequence[float]) -> Any:
    """Least squares of relative errors with coefficients of at least 0. Coefficients that would be
    negative are left out one at a time, beginning with the one whose removal costs least.
    """
    table = np.array(rows) / np.array(values)[:, None]
    kept = list(range(table.shape[1]))
    while (found := _solve(table[:, kept])[0]).min() < 0:
        negative = [column for column, value in zip(kept, found, strict=True) if value < 0]
        errors = [_solve(np.delete(table[:, kept], kept.index(n), 1))[1] for n in negative]
        kept.remove(negative[int(np.argmin(errors))])
    full = np.zeros(table.shape[1])
    full[kept] = found
    return full


def _solve(table: NDArray[np.float64]) -> tuple[Any, float]:
    """Coefficients with which the columns add up to 1, and the remaining squared error."""
    found = np.linalg.lstsq(table, np.ones(len(table)), rcond=None)[0]
    return found, float(np.square(table @ found - 1).sum())


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
                "luts": point["luts"] - point.get("former", 0),
                "block_rams": point["block_rams"],
                "fmax_mhz": point.get("fmax_mhz"),
            }
        )
    return rows
