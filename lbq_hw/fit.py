"""Sizes the core for a board: the fastest one that the board holds, by the model of `resources`.

Lanes, word, neuron units and queue are tried in all combinations that make sense; widths and
memories are what the compiler proves the network needs. Cycles are estimated from accumulations:
counted by the golden model on given images, or assumed if there are none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boards import Board, clocks
from lbq_hw import golden, resources
from lbq_hw.compiler import CompileError, smallest_for
from lbq_hw.compiler.draft import draft
from lbq_hw.compiler.lower import LoweredLayer
from lbq_hw.config import CoreConfig
from lbq_hw.counts import Counter
from lbq_hw.cycles.stages import NeuronTiming
from lbq_hw.network import Network
from lbq_hw.resources import Estimate

ACTIVE = 0.08  # share of set bits that is assumed where no image tells
MARGIN = 0.95  # of the estimated Fmax, so that most seeds make the clock
FULL = 0.98  # of a fabric's LUTs; 0.957 of a UP5K was seen to route
_LAYER_CYCLES = 40  # from one layer to the next: drain, read records, fill the queues


class FitError(RuntimeError):
    """A network that a board cannot hold: what is short, one sentence a line."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A core for a board; all but `config` and `clock_hz` are estimates."""

    config: CoreConfig
    board: str
    clock_hz: int
    estimate: Estimate | None
    cycles: float
    measured: bool

    @property
    def seconds(self) -> float:
        """An image's time."""
        return self.cycles / self.clock_hz

    @property
    def summary(self) -> str:
        c = self.config
        text = f"P = {c.lanes}, W = {c.word}, L = {c.units} at {self.clock_hz / 1e6:g} MHz, "
        if self.estimate is not None:
            text += f"about {self.estimate.luts:,} LUTs, {self.estimate.block_rams} block RAMs, "
        return text + f"{self.seconds * 1e6:,.0f} us an image"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def size(
    network: Network,
    board: Board,
    *,
    lanes: int | None = None,
    weight_bits: int | None = None,
    target_hz: int | None = None,
    images: NDArray[np.uint8] | None = None,
) -> Fitted:
    """The fastest core for a board; `lanes`, `weight_bits` and `target_hz` are kept if given.

    FitError names what is short if there is none; ClockError if the clock cannot be made.
    """
    if board.family is not None:
        _refuse_hopeless(network, board)
    work = accumulations(network, images)
    problems: list[str] = []
    candidates = sorted(
        _candidates(network, board, work, lanes, weight_bits, problems),
        key=lambda candidate: (candidate[1], candidate[0].units, candidate[0].word),
    )
    best: Fitted | None = None
    nearest: tuple[int, list[str]] | None = None
    for config, count in candidates:
        if best is not None and count / _fastest(board, target_hz) >= best.seconds:
            break  # the rest is slower even at the fastest clock
        fitted, lack, short = _judge(config, count, board, target_hz, images is not None)
        if fitted is None:
            if nearest is None or lack < nearest[0]:
                nearest = (lack, short)
        elif best is None or fitted.seconds < best.seconds:
            best = fitted
    if best is not None:
        return best
    reasons = nearest[1] if nearest is not None else problems
    raise FitError(
        f"network {network.name!r} does not fit {board.title}"
        + (f" with {lanes} lanes" if lanes else "")
        + "".join(f"\n- {reason}" for reason in reasons)
    )


def _fastest(board: Board, target_hz: int | None) -> int:
    return target_hz or board.target_hz


def accumulations(network: Network, images: NDArray[np.uint8] | None) -> list[float]:
    """Bit-sparse accumulations an image of each layer."""
    if images is not None:
        counter = Counter(network)
        golden.run(network, images, observe=counter)
        return [layer.work.bit_sparse for layer in counter.counts().layers]
    counter = Counter(network)
    shape = (
        network.input.shape if network.input.static else (network.timesteps, *network.input.shape)
    )
    golden.run(network, np.zeros((1, *shape), np.uint8), observe=counter)
    planes = network.input.bits
    totals = []
    for layer, counted in zip(network.layers, counter.counts().layers, strict=True):
        totals.append(ACTIVE * planes * sum(p.macs * p.executions for p in counted.paths))
        planes = max(1, layer.capacity.bit_length())
    return totals


def _refuse_hopeless(network: Network, board: Board) -> None:
    """Before anything is compiled: weights that exceed all memory of the board."""
    needed = network.parameters * network.weight_bits
    have = board.block_rams * _BLOCK_BITS[board.family or ""] + board.sprams * (1 << 18)
    if needed > have:
        raise FitError(
            f"network {network.name!r} does not fit {board.title}\n- the weights need "
            f"{needed:,} bits, its memories have {have:,} ({needed - have:,} short)"
        )


_BLOCK_BITS = {"ice40": 4096, "ecp5": 18432, "gowin": 18432}


def _candidates(
    network: Network,
    board: Board,
    work: Sequence[float],
    lanes: int | None,
    weight_bits: int | None,
    problems: list[str],
) -> Iterator[tuple[CoreConfig, float]]:
    widest = max(layer.shape[0] for layer in network.layers)
    fixed = {} if weight_bits is None else {"weight_bits": weight_bits}
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
            config = _rounded(config, board)
            layers = draft(network, config).layers
            for units in (count // 16, count // 8, count // 4, count // 2):
                if units >= 1:
                    made = config.with_(units=units)
                    yield made, cycles(layers, made, work, network.timesteps)


def _rounded(config: CoreConfig, board: Board) -> CoreConfig:
    """The core with sizes raised to powers of two where memories have that room anyway: what cannot
    be exceeded needs no logic that tells legal from illegal.
    """
    names = ["side", "layers", "paths", "segments", "runs", "channels"]
    if resources.sprams(config, board):
        names.append("weight_rows")
    return config.with_(**{name: 1 << (getattr(config, name) - 1).bit_length() for name in names})


def cycles(
    layers: Sequence[LoweredLayer], config: CoreConfig, work: Sequence[float], timesteps: int
) -> float:
    """Cycles an image, estimated: of each layer what is slowest of lanes, scanner and neurons."""
    total = 0.0
    for lowered, accumulated in zip(layers, work, strict=True):
        channels, height, width = lowered.layer.shape
        runs = 1 if lowered.static else timesteps
        steps = lowered.tiles * height * width * runs
        requests = sum(len(lowered.paths[segment.path].runs) for segment in lowered.segments)
        lanes = lowered.tiles * accumulated / channels + 2 * steps
        total += max(lanes, steps * (requests + 1), _passes(lowered, config, steps, timesteps))
    return total + _LAYER_CYCLES * len(layers)


def _passes(lowered: LoweredLayer, config: CoreConfig, steps: int, timesteps: int) -> int:
    """Cycles of the neuron units: passes wait for membranes, and for the planes before them."""
    layer, timing = lowered.layer, NeuronTiming.of(config)
    passes = steps * (timesteps if lowered.static else 1)
    emitting = passes * math.prod(layer.output_shape) // math.prod(layer.shape)
    waits = max(0, layer.capacity.bit_length() - timing.groups) * emitting
    continued = passes * (timesteps - 1) // timesteps
    return passes * timing.groups + max(waits, continued * max(0, timing.loop - timing.groups))


def _judge(
    config: CoreConfig, count: float, board: Board, target_hz: int | None, measured: bool
) -> tuple[Fitted | None, int, list[str]]:
    """The core at its clock; or what is short, and a number that tells how much."""
    common = {"config": config, "board": board.name, "cycles": count, "measured": measured}
    aim = _fastest(board, target_hz)
    if board.family is None:
        return Fitted(clock_hz=aim, estimate=None, **common), 0, []
    guess = resources.least(config, board)
    if not guess.short(board):
        guess = resources.estimate(config, board)
    if short := guess.short(board):
        return None, guess.luts + 100 * guess.block_rams, short
    if guess.luts > FULL * board.luts:
        reason = f"the core needs about {guess.luts:,} of {board.luts:,} LUTs: too full to route"
        return None, guess.luts, [reason]
    if target_hz is None and guess.fmax_hz:
        aim = max(board.clock_hz, min(aim, int(MARGIN * guess.fmax_hz)))
    setting = clocks.solve(board.pll, board.clock_hz, aim)
    clock_hz = board.clock_hz if setting is None else setting.output_hz
    return Fitted(clock_hz=clock_hz, estimate=guess, **common), 0, []
