"""Cores for a board, by estimate: cores that no other core beats both in time and in cells.

Lanes, word, summary, units and bits are those that sizing would try. Each core is tried without a
door, with one, and with a queue behind it, and at every clock that lets the host's line be faster.
The time of a core needs no elaboration, and neither does a lower bound of its cells. So the
candidates are sorted by time, and only those that may have fewer cells than all faster ones are
elaborated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from lbq_hw import boards, resources
from lbq_hw.boards import Board, clocks
from lbq_hw.compiler import Program
from lbq_hw.compiler.draft import draft
from lbq_hw.compiler.passes.demand import ASSUMED
from lbq_hw.config import CoreConfig
from lbq_hw.explore.front import costs, front
from lbq_hw.explore.points import Point
from lbq_hw.host.estimate import traffic
from lbq_hw.isa.link import LEAST_DIVISOR
from lbq_hw.network import Network
from lbq_hw.resources import Estimate
from lbq_hw.sizing import MARGIN, Ask, SizedCore, Weights, cores_on_chip, door, on_tape
from lbq_hw.sizing.activity import Activity


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is explored. An empty list leaves the choice to the exploration."""

    network: Network
    busy: Activity
    lanes: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    units: tuple[int, ...] = ()
    bits: tuple[int, ...] = ()
    clocks_hz: tuple[int, ...] = ()
    memory: Weights | None = None
    doors: bool = True

    def keeps(self, config: CoreConfig) -> bool:
        """Whether a core meets the wish."""
        return (not self.words or config.word in self.words) and (
            not self.units or config.units in self.units
        )


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A core of known time; `luts` is a lower bound, or the estimate where there is one."""

    ask: Ask
    core: SizedCore
    baud: int
    seconds: float
    luts: int


def explore(wish: Wish, board: Board) -> list[Point]:
    """The front of one board; empty where no core fits."""
    found: list[Point] = []
    if wish.memory != "external" and resources.hopeless(wish.network, board) is None:
        found = _fitting(wish, board, _candidates(wish, board, _on_chip(wish, board)))
    if not found and board.sdram and wish.memory != "internal":
        found = _fitting(wish, board, _candidates(wish, board, _on_tape(wish, board)))
    return found


def _fitting(wish: Wish, board: Board, candidates: Iterator[_Candidate]) -> list[Point]:
    """The candidates that the board holds, and that no faster candidate beats in cells."""
    found: list[Point] = []
    least = float("inf")
    for one in sorted(candidates, key=lambda c: (c.seconds, c.luts, c.core.seconds)):
        config = one.core.config
        bound = resources.least(config, board)
        if one.luts >= least or resources.short(bound, one.ask.rest(config)):
            continue
        if not one.ask.holds(config):
            continue
        guess = resources.estimate(config, board) + _door_of(one.ask, config)
        if guess.luts < least:
            least = guess.luts
            found.append(
                Point(
                    model=wish.network.name,
                    board=board.name,
                    clock_hz=one.core.clock_hz,
                    baud=one.baud,
                    luts=guess.luts,
                    block_rams=guess.block_rams,
                    seconds=one.seconds,
                    core_seconds=one.core.seconds,
                    core=replace(one.core, estimate=guess).to_dict(),
                )
            )
    return front(found, costs)


def _on_chip(wish: Wish, board: Board) -> Iterator[tuple[CoreConfig, float]]:
    for lanes in wish.lanes or (None,):
        for bits in wish.bits or (None,):
            ask = Ask(wish.network, board, lanes, bits, None, wish.busy, wish.memory)
            yield from cores_on_chip(ask, [])


def _on_tape(wish: Wish, board: Board) -> Iterator[tuple[CoreConfig, float]]:
    busy = [share / ASSUMED for share in wish.busy.shares]
    for lanes in wish.lanes or (None,):
        for bits in wish.bits or (None,):
            yield from on_tape.candidates(
                wish.network, board, lanes=lanes, weight_bits=bits, busy=busy, problems=[]
            )


def _candidates(
    wish: Wish, board: Board, cores: Iterator[tuple[CoreConfig, float]]
) -> Iterator[_Candidate]:
    """Each core with each door, at the clock that is fastest for the host."""
    kinds = ((False, False), (True, False), (True, True)) if wish.doors else ((False, False),)
    for config, cycles in cores:
        if not wish.keeps(config):
            continue
        program = Program.of(draft(wish.network, config), config, b"")
        bound = resources.least(config, board).luts
        for has_door, queue in kinds:
            ask = Ask(
                wish.network, board, None, None, None, wish.busy, wish.memory, has_door, queue
            )
            opening = door.opening_of(program, queue=queue) if has_door else None
            if has_door and opening is None:
                continue
            made = [
                _at_clock(ask, program, clock_hz, cycles, opening)
                for clock_hz in _clocks(wish, board, config)
            ]
            if made:
                core, seconds, baud = min(made, key=lambda one: (one[1], one[0].seconds))
                luts = bound + _door_of(ask, config).luts
                yield _Candidate(ask=ask, core=core, baud=baud, seconds=seconds, luts=luts)


def _at_clock(
    ask: Ask, program: Program, clock_hz: int, cycles: float, opening: door.Opening | None
) -> tuple[SizedCore, float, int]:
    """A core at a clock, the seconds from image to image at the host, and its rate."""
    line = door.line_of(ask.board, clock_hz)
    made = traffic(program, pace=line.pace(opening, clock_hz=clock_hz, cycles=cycles))
    core = SizedCore(
        config=program.config,
        board=ask.board.name,
        clock_hz=clock_hz,
        estimate=None,
        cycles=cycles,
        activity=ask.busy,
        opening=opening,
    )
    return core, line.seconds(made, core.seconds), line.baud


def _door_of(ask: Ask, config: CoreConfig) -> Estimate:
    """The resources of the core's door, if it has one."""
    nothing = Estimate(luts=0, block_rams=0, sprams=0, fmax_hz=0.0)
    return ask.door_cells(config) if ask.door else nothing


def _clocks(wish: Wish, board: Board, config: CoreConfig) -> Sequence[int]:
    """Clocks to try: the fastest clock that the core should meet by estimate, and, for each rate of
    the bridge, the fastest clock below it that can be divided to this rate.
    """
    if wish.clocks_hz:
        aims = set(wish.clocks_hz)
    elif config.external:
        aims = {board.target_hz}  # the cycles of such a core were planned for this clock
    else:
        had, fmax_hz = resources.met(config, board), resources.least(config, board).fmax_hz
        fmax_hz = min(fmax_hz, resources.fastest_hz(board))  # no estimate beyond what was seen
        limit = int(had.clock_hz if had else MARGIN * fmax_hz if fmax_hz else board.target_hz)
        rates = () if board.bridge is None else board.bridge.rates
        aims = {limit} | {limit // rate * rate for rate in rates if limit >= LEAST_DIVISOR * rate}
    found = {_made(board.pll, board.clock_hz, aim) for aim in aims}
    return sorted(clock_hz for clock_hz in found if clock_hz is not None)


@lru_cache(maxsize=4096)
def _made(pll: str, input_hz: int, aim_hz: int) -> int | None:
    """The fastest clock of at most `aim_hz` that a PLL makes; None if there is none near it."""
    with suppress(clocks.ClockError):
        setting = clocks.solve(pll, input_hz, aim_hz)
        return input_hz if setting is None else setting.output_hz
    return None


def boards_by_device(names: Sequence[str]) -> list[list[str]]:
    """Boards with a fabric, those of one device together: they share what is elaborated."""
    groups: dict[object, list[str]] = {}
    for name in names:
        board = boards.find(name)
        if board.family is not None:
            chip = board.chip
            key = board.device[:7], chip and chip.data_bits
            groups.setdefault(key, []).append(name)
    return list(groups.values())
