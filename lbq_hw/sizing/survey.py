"""What fits where: a network sized for many boards, several at a time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Literal

from lbq_hw import boards, units
from lbq_hw.boards.clocks import ClockError
from lbq_hw.network import Network
from lbq_hw.sizing import SizedCore, attempt
from lbq_hw.sizing.activity import Activity

Memory = Literal["internal", "external"]
COLUMNS = ("board", "lanes", "clock", "LUTs", "BRAM", "weights", "per image", "images/s")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A board: the core for it, of which all but the lanes and the memory are estimates, or why
    there is none (`short`, one sentence each).
    """

    board: str
    fits: bool
    short: tuple[str, ...] = ()
    lanes: int | None = None
    memory: Memory | None = None
    clock_hz: int | None = None
    luts: int | None = None
    block_rams: int | None = None
    cycles: float | None = None
    seconds: float | None = None

    @property
    def cells(self) -> list[str]:
        """The line of a table, in the order of `COLUMNS`."""
        if not self.fits or self.clock_hz is None or self.seconds is None:
            return [self.board]
        counts = (self.luts, self.block_rams)
        return [
            self.board,
            str(self.lanes),
            f"{self.clock_hz / 1e6:.3g} MHz",
            *("" if count is None else f"{count:,}" for count in counts),
            "chip" if self.memory == "internal" else "SDRAM",
            units.seconds(self.seconds),
            units.three_digits(1 / self.seconds),
        ]


def survey(
    network: Network, *, busy: Activity, options: Mapping[str, Any], workers: int | None = None
) -> list[Line]:
    """One line per board with a fabric, by name. `options` are those of `sizing.attempt`.

    Boards of one device share what sizing learns, so that one process does them in turn.
    """
    groups: dict[object, list[str]] = defaultdict(list)
    for name in boards.names():
        board = boards.find(name)
        if board.family is not None:
            chip = board.chip
            groups[board.device[:7], chip and chip.data_bits].append(name)
    count = min(workers or os.cpu_count() or 1, len(groups))
    work = [(network, busy, dict(options), names) for names in groups.values()]
    if count == 1:
        found = map(_sized, work)
        return sorted((line for lines in found for line in lines), key=lambda line: line.board)
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        found = pool.map(_sized, work)
        return sorted((line for lines in found for line in lines), key=lambda line: line.board)


def _sized(work: tuple[Network, Activity, dict[str, Any], Sequence[str]]) -> list[Line]:
    network, busy, options, names = work
    return [_line(network, busy, options, name) for name in names]


def _line(network: Network, busy: Activity, options: dict[str, Any], name: str) -> Line:
    try:
        found = attempt(network, boards.find(name), busy=busy, **options)
    except ClockError as error:
        return Line(board=name, fits=False, short=(str(error),))
    if not isinstance(found, SizedCore):
        return Line(board=name, fits=False, short=tuple(found.reasons))
    guess = found.estimate
    return Line(
        board=name,
        fits=True,
        lanes=found.config.lanes,
        memory="external" if found.config.external else "internal",
        clock_hz=found.clock_hz,
        luts=None if guess is None else guess.luts,
        block_rams=None if guess is None else guess.block_rams,
        cycles=found.cycles,
        seconds=found.seconds,
    )
