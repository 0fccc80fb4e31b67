"""Sizes the core for a board: finds the fastest core that the board holds, by the estimates of
`lbq_hw.resources`.

Lanes, word, summary and neuron units are tried in all combinations that make sense; widths and
memories are what the compiler proves the network needs. Cycles are estimated from accumulations
(`activity`). Of cores that are about equally fast, the smallest wins. If none fits and the board
has external memory, the weights go there (`on_tape`). A `door` is part of the core if there is room
for it. If no core fits, `refusal` says what would fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lbq_hw import resources
from lbq_hw.boards import Board, clocks
from lbq_hw.compiler import CompileError, Program, smallest_for
from lbq_hw.compiler.draft import draft
from lbq_hw.compiler.passes.demand import ASSUMED
from lbq_hw.compiler.patches import rewrite
from lbq_hw.config import CoreConfig
from lbq_hw.cycles.estimate import estimate
from lbq_hw.host.estimate import expected_traffic
from lbq_hw.isa.door import Opening
from lbq_hw.network import Network
from lbq_hw.resources import Estimate
from lbq_hw.sizing import door, on_tape, refusal
from lbq_hw.sizing.activity import Activity, activity
from lbq_hw.units import megahertz, seconds

Weights = Literal["internal", "external"]
_LEAST_WORD = 16
MARGIN = 0.95  # of the estimated Fmax, so that most seeds make the clock
WORTH = 0.02  # share of an image's time that a core must gain to be worth more of the board
ROOM = 0.25  # the same, to be worth a board that is so full that place and route may fail


class FitError(RuntimeError):
    """A network that a board cannot hold: lines that say what is short, and what would fit."""


@dataclass(frozen=True, kw_only=True)
class SizedCore:
    """A core for a board; all but `config`, `clock_hz` and `opening` are estimates.

    `cycles` rest on `activity`, whose `source` says whether it is known or assumed. `opening` is
    that of the core's door, if it has one.
    """

    config: CoreConfig
    board: str
    clock_hz: int
    estimate: Estimate | None
    cycles: float
    activity: Activity
    opening: Opening | None = None

    @property
    def seconds(self) -> float:
        """Computing time of an image; the link is not in it."""
        return self.cycles / self.clock_hz

    @property
    def sizes(self) -> str:
        """The core in words, and what it takes of the board."""
        c = self.config
        text = f"P = {c.lanes}, W = {c.word}, L = {c.units} at {megahertz(self.clock_hz)}"
        if self.estimate is None:
            return text
        return f"{text}, about {self.estimate.luts:,} LUTs, {self.estimate.block_rams} block RAMs"

    @property
    def summary(self) -> str:
        """`sizes`, and the time per image."""
        text = f"{self.sizes}, about {seconds(self.seconds)} per image without the link"
        return f"{text}, {remark}" if (remark := self.activity.remark) else text

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def size(
    network: Network,
    board: Board,
    *,
    lanes: int | None = None,
    weight_bits: int | None = None,
    target_hz: int | None = None,
    memory: Weights | None = None,
    doors: bool = True,
    images: NDArray[np.uint8] | None = None,
    evaluation: Mapping[str, Any] | None = None,
) -> SizedCore:
    """The core for a board; `lanes`, `weight_bits`, `target_hz` and `memory` are kept if given.

    The core is the smallest of those that are at most `WORTH` slower than the fastest. A core that
    leaves no room for place and route is taken only if it is faster than all others by more than
    `ROOM`. `memory` says where the weights are; by default, on the chip if they fit. With `doors`,
    the core has a door if the board has room for it. The activity comes from `images`, else from
    `evaluation`. FitError if no core fits: it says what is short, and what would fit. ClockError if
    no PLL makes the clock.
    """
    busy = activity(network, images=images, evaluation=evaluation)
    found = attempt(
        network,
        board,
        lanes=lanes,
        weight_bits=weight_bits,
        target_hz=target_hz,
        memory=memory,
        doors=doors,
        busy=busy,
    )
    if isinstance(found, SizedCore):
        return found
    if memory == "external" and not board.sdram:
        raise FitError(found.reasons[0])
    raise _refused(network, board, lanes, found.reasons, found.nearest)


def attempt(
    network: Network,
    board: Board,
    *,
    busy: Activity,
    lanes: int | None = None,
    weight_bits: int | None = None,
    target_hz: int | None = None,
    memory: Weights | None = None,
    doors: bool = True,
) -> SizedCore | Refusal:
    """As `size`, but for a network that does not fit it returns only the reasons."""
    if memory == "external" and not board.sdram:
        return Refusal([f"{board.title} has no external memory that a core can read"])
    ask = Ask(network, board, lanes, weight_bits, target_hz, busy, memory)
    return (_with_door(ask) if doors else None) or _sized(ask)


@dataclass(frozen=True)
class Ask:
    """The constraints of sizing; None: free to choose. `door`: leave room for one, with or without
    a `queue`.
    """

    network: Network
    board: Board
    lanes: int | None
    weight_bits: int | None
    target_hz: int | None
    busy: Activity
    memory: Weights | None
    door: bool = False
    queue: bool = False

    def rest(self, config: CoreConfig | None = None) -> Board:
        """The resources of the board that a core may take; without a core, the most that any core
        may take.
        """
        if not self.door or self.board.family is None:
            return self.board
        return door.beside(self.board, self.door_cells(config))

    def holds(self, config: CoreConfig) -> bool:
        """Whether the board has room for a core."""
        board = self.board
        if board.family is None:
            return True
        return not resources.short(resources.estimate(config, board), self.rest(config))

    def sized(self, config: CoreConfig, cycles: float) -> SizedCore:
        """A core that the board holds."""
        guess = None if self.board.family is None else resources.estimate(config, self.board)
        clock_hz = _clock(self.board, config, guess, self.target_hz)
        if guess is not None and self.door:
            guess += self.door_cells(config)
        return SizedCore(
            config=config,
            board=self.board.name,
            clock_hz=clock_hz,
            estimate=guess,
            cycles=cycles,
            activity=self.busy,
        )

    def opened(self, core: SizedCore) -> SizedCore:
        """A core with its door; without one if a door cannot return the results."""
        program = Program.of(draft(self.network, core.config), core.config, b"")
        return replace(core, opening=door.opening_of(program, queue=self.queue))

    def seconds(self, core: SizedCore) -> float:
        """Seconds from image to image, as a host sees them through the core's door."""
        line = door.line_of(self.board, core.clock_hz)
        pace = line.pace(core.opening, clock_hz=core.clock_hz, cycles=core.cycles)
        made = expected_traffic(self.network, core.config, pace=pace)
        return line.seconds(made, core.seconds)

    def door_cells(self, config: CoreConfig | None) -> Estimate:
        """The resources of the door of a core; without a core, the least that any core's door
        takes.
        """
        patches, word = None, _LEAST_WORD
        if config is not None:
            found = (
                draft(self.network, config) if config.external else rewrite(self.network, config)[0]
            )
            patches, word = found.patches, config.word
        return door.taken(self.network, patches, self.board, word=word, queue=self.queue)


def _with_door(ask: Ask) -> SizedCore | None:
    """The core and its door with the most images per second; None if there is no room for a door.

    If pixels would wait for a run, the door has a queue, unless a queue leaves so little memory
    that the core loses more than the queue gains.
    """
    plain = replace(ask, door=True)
    core = _sized(plain)
    if not isinstance(core, SizedCore):
        return None
    if core.config.external and ask.memory is None and isinstance(_on_chip(ask), SizedCore):
        return None  # rather the weights on the chip
    core = plain.opened(core)
    if core.opening is None:
        return None
    if not door.waits(ask.network, ask.board, clock_hz=core.clock_hz, cycles=core.cycles):
        return core
    queued = replace(ask, door=True, queue=True)
    if queued.holds(core.config):
        return queued.opened(queued.sized(core.config, core.cycles))
    other = _sized(queued)
    if isinstance(other, SizedCore):
        other = queued.opened(other)
        if other.opening is not None and ask.seconds(other) < ask.seconds(core):
            return other
    return core


def _sized(ask: Ask) -> SizedCore | Refusal:
    """A core with its weights on the chip; with external memory, if that is asked for, or if the
    chip is too small and the board has one.
    """
    if ask.memory == "external":
        return _on_tape(ask)
    found = _on_chip(ask)
    if isinstance(found, SizedCore) or not ask.board.sdram or ask.memory == "internal":
        return found
    return _on_tape(ask)


@dataclass(frozen=True)
class Refusal:
    """Why no core fits, and the core that is nearest to fitting, if there is one."""

    reasons: Sequence[str]
    nearest: CoreConfig | None = None


def _on_chip(ask: Ask) -> SizedCore | Refusal:
    """The core with all weights on the chip."""
    board = ask.board
    if hopeless := resources.hopeless(ask.network, board):
        return Refusal([hopeless])
    problems: list[str] = []
    candidates = sorted(
        cores_on_chip(ask, problems),
        key=lambda candidate: (candidate[1], candidate[0].units, candidate[0].word),
    )
    found: list[SizedCore] = []
    nearest: tuple[tuple[int, int], CoreConfig] | None = None
    fastest_hz = ask.target_hz or board.target_hz
    for config, count in candidates:
        if found and count / fastest_hz > (1 + ROOM) * min(core.seconds for core in found):
            break  # the rest is slower even at the fastest clock
        lack = None if board.family is None else resources.lack(config, ask.rest(config))
        if lack is None:
            found.append(ask.sized(config, count))
        elif nearest is None or lack < nearest[0]:
            nearest = (lack, config)
    if found:
        return _economical(found, board)
    if nearest is None:
        return Refusal(problems)
    short = resources.short(resources.estimate(nearest[1], board), board)
    return Refusal(short, nearest[1])


def _on_tape(ask: Ask) -> SizedCore | Refusal:
    """The core that reads its weights from the board's memory."""
    assert ask.board.chip is not None
    needed, have = (
        -(-ask.network.parameters * ask.network.weight_bits // 8),
        ask.board.chip.size_bytes,
    )
    if needed > have:
        return Refusal([f"the weights need {needed:,} bytes, its external memory has {have:,}"])
    problems: list[str] = []
    candidates = on_tape.candidates(
        ask.network,
        ask.rest(),
        lanes=ask.lanes,
        weight_bits=ask.weight_bits,
        busy=[share / ASSUMED for share in ask.busy.shares],
        problems=problems,
    )
    found = [ask.sized(config, cycles) for config, cycles in candidates if ask.holds(config)]
    if found:
        return _economical(found, ask.board)
    return Refusal([f"with external memory: {text}" for text in problems])


def _economical(found: Sequence[SizedCore], board: Board) -> SizedCore:
    """The smallest of the cores that are about as fast as the fastest. A core that leaves no room
    for place and route is not taken if it is only a little faster.
    """
    best = min(core.seconds for core in found)
    roomy = [
        core
        for core in found
        if core.estimate is None
        or (core.seconds <= (1 + ROOM) * best and resources.roomy(core.estimate, board))
    ]
    found = roomy or found
    limit = (1 + WORTH) * min(core.seconds for core in found)
    fast = [core for core in found if core.seconds <= limit]
    return min(fast, key=lambda core: (_taken(core.estimate, board), core.seconds))


def _taken(guess: Estimate | None, board: Board) -> float:
    """Shares of the board's LUTs and block RAMs, added."""
    if guess is None:
        return 0.0
    return guess.luts / board.luts + guess.block_rams / board.block_rams


def _refused(
    network: Network,
    board: Board,
    lanes: int | None,
    reasons: Sequence[str],
    config: CoreConfig | None,
) -> FitError:
    head = f"network {network.name!r} does not fit {board.title}"
    head += f" with {lanes} lanes" if lanes else ""
    advice = refusal.advice(network, board, lanes=lanes, config=config)
    return FitError(head + "".join(f"\n- {reason}" for reason in (*reasons, *advice)))


def cores_on_chip(ask: Ask, problems: list[str]) -> Iterator[tuple[CoreConfig, float]]:
    """Every core with its weights on the chip that makes sense for the network, whether the board
    has room for it or not, and its cycles per image.
    """
    network, lanes, work = ask.network, ask.lanes, ask.busy.accumulations
    widest = max(layer.shape[0] for layer in network.layers)
    fixed = {} if ask.weight_bits is None else {"weight_bits": ask.weight_bits}
    for count in [lanes] if lanes else [4, 8, 16, 32, 64, 128, 256]:
        if lanes is None and count >= 2 * widest and count > 4:
            return
        shapes = [(word, flags) for word in (16, 32, 64, 128, 256) for flags in (8, 16)]
        for word, flags in shapes:
            if not (count <= word <= max(64, count) and flags <= word):
                continue
            try:
                config = smallest_for(network, lanes=count, word=word, summary=flags, **fixed)
            except CompileError as error:
                problems[:] = str(error).splitlines()[1:]
                continue
            config = resources.rounded(config, ask.board)
            layers = draft(network, config).layers
            for units in (count // 16, count // 8, count // 4, count // 2):
                if units >= 1:
                    made = config.with_(units=units)
                    yield made, estimate(layers, made, work, network.timesteps)


def _clock(board: Board, config: CoreConfig, guess: Estimate | None, target_hz: int | None) -> int:
    """The clock of a core that fits: the clock that is asked for, else the clock of an earlier
    build of the same core, else the clock that the model estimates.
    """
    aim = target_hz or board.target_hz
    if guess is None:
        return aim
    if target_hz is None and guess.fmax_hz:
        had = resources.met(config, board)
        can_hz = MARGIN * guess.fmax_hz if had is None else had.clock_hz
        slowest = min(board.clock_hz, board.target_hz)  # what every PLL here can make
        aim = max(slowest, min(aim, int(can_hz)))
    setting = clocks.solve(board.pll, board.clock_hz, aim)
    return board.clock_hz if setting is None else setting.output_hz
