"""Why a core does not fit a board: the cells that its features take, and the nearest change that
fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from lbq_hw import boards, resources
from lbq_hw.boards import Board
from lbq_hw.compiler import CompileError, smallest_for
from lbq_hw.config import CoreConfig
from lbq_hw.network import Layer, Network, Path
from lbq_hw.numeric import Integers
from lbq_hw.sizing import on_tape

FEW_BITS = 4  # bits of a weight with which networks train about as well
_SECOND, _POOLS = "a second path into a layer", "max-pooling"
_LANES = (16, 8, 4)


def advice(
    network: Network, board: Board, *, lanes: int | None, config: CoreConfig | None
) -> list[str]:
    """Sentences that follow a refusal: the costs of `config`, the core that was nearest to fitting;
    the first change of the network that fits the board; the first board that holds the network as
    it is; and, if the weights exceed this board's memories, the boards whose external memory holds
    them.
    """
    found = [] if config is None else _costs(config, board)
    others = [*_board(network, board, lanes)]
    if resources.hopeless(network, board):
        others += _external(network, board)
    return [*found, _change(network, board, lanes), *(others or ["no other board holds it"])]


def _costs(config: CoreConfig, board: Board) -> list[str]:
    """The cost of each feature of the core, largest first; features without a cost are left out."""
    whole = resources.estimate(config, board)
    saved: list[tuple[int, int, str]] = []
    for name, fields in _features(config):
        less = resources.estimate(config.with_(**fields), board)
        saved.append((whole.luts - less.luts, whole.block_rams - less.block_rams, name))
    parts = []
    for luts, rams, name in sorted(saved, reverse=True):
        counts = [(luts, "LUTs"), (rams, "block RAM" if rams == 1 else "block RAMs")]
        if amount := " and ".join(f"{count:,} {what}" for count, what in counts if count > 0):
            parts.append(f"{name} costs about {amount}")
    return [", ".join(parts)] if parts else []


def _features(config: CoreConfig) -> Iterator[tuple[str, dict[str, int]]]:
    """Features that a core has, each with the fields of a core without it."""
    c = config
    if c.layer_paths > 1:
        yield _SECOND, {"layer_paths": 1}
    if c.timesteps > 1:
        yield f"T = {c.timesteps} instead of 1", {"timesteps": 1}
    if c.window > 1:
        yield _POOLS, {"window": 1}
    if (more := c.weight_bits - FEW_BITS) > 0:
        widths = ("weight_bits", "acc_bits", "membrane_bits")
        narrow = {name: max(FEW_BITS, getattr(c, name) - more) for name in widths} | {"narrow": 0}
        yield f"a weight of {c.weight_bits} bits instead of {FEW_BITS}", narrow


@dataclass(frozen=True, kw_only=True, eq=False)
class _Change:
    """A changed network, and `fields` that its core no longer needs."""

    words: str
    network: Network
    fields: dict[str, int] = field(default_factory=dict)


def _changes(network: Network) -> Iterator[_Change]:
    """Single changes of a network, starting with the mildest."""
    if network.weight_bits > FEW_BITS:
        narrow = replace(_mapped(network, _narrow(network.weight_bits)), weight_bits=FEW_BITS)
        yield _Change(words=f"{FEW_BITS}-bit weights", network=narrow)
    if network.timesteps > 1:
        yield _Change(words="T = 1", network=replace(network, timesteps=1))
    if any(layer.pool is not None for layer in network.layers):
        yield _Change(words="strides instead of max-pools", network=network, fields={"window": 1})
    if any(len(layer.paths) > 1 for layer in network.layers):
        alone = _mapped(network, lambda layer: replace(layer, paths=layer.paths[:1]))
        yield _Change(words="no shortcuts", network=alone)


def _mapped(network: Network, change: Callable[[Layer], Layer]) -> Network:
    return replace(network, layers=tuple(map(change, network.layers)))


def _narrow(bits: int) -> Callable[[Layer], Layer]:
    """Divides a layer's weights, biases and thresholds, so that they need fewer bits."""
    down = bits - FEW_BITS

    def less(values: Integers) -> Integers:
        return np.sign(values) * (np.abs(values.astype(np.int64)) >> down)

    def path(old: Path) -> Path:
        return replace(old, weight=less(old.weight))

    def layer(old: Layer) -> Layer:
        neuron = old.neuron.mapped(less) if old.neuron else None
        paths = tuple(map(path, old.paths))
        return replace(old, paths=paths, bias=less(old.bias), neuron=neuron, weight_bits=None)

    return layer


def _change(network: Network, board: Board, lanes: int | None) -> str:
    if lanes and (found := _smallest(network, board, None)):
        return f"nearest change that fits: leave out --lanes; {found}"
    tried = []
    for change in _changes(network):
        if found := _smallest(change.network, board, None, **change.fields):
            return f"nearest change that fits: {change.words}; {found}"
        tried.append(change.words)
    if not tried:
        return "no change is left to try"
    return f"tried, and still too large: {'; '.join(tried)}"


def _board(network: Network, board: Board, lanes: int | None) -> list[str]:
    """The smallest board whose own memories hold the network."""
    others = (boards.find(name) for name in boards.names() if name != board.name)
    for other in sorted((b for b in others if b.family is not None), key=lambda b: b.luts):
        if found := _smallest(network, other, lanes):
            return [f"nearest board that holds it: {other.name}; {found}"]
    return []


def _external(network: Network, board: Board) -> list[str]:
    """Boards that hold the network in external memory, smallest first."""
    others = [boards.find(name) for name in boards.names() if name != board.name]
    able = sorted((b for b in others if b.sdram), key=lambda b: b.luts)
    holding = [b.name for b in able if on_tape.holds(network, b)]
    return [f"boards whose external memory holds it: {', '.join(holding)}"] if holding else []


def _smallest(network: Network, board: Board, lanes: int | None, **fields: int) -> str | None:
    """A small core for the network that fits the board, with its figures; None if there is none."""
    if resources.hopeless(network, board):
        return None
    for count in (lanes,) if lanes else _LANES:
        for word in (max(16, count), max(32, count)):
            try:
                config = smallest_for(network, lanes=count, word=word, summary=8, units=1)
            except CompileError:
                continue
            config = resources.rounded(config.with_(**fields), board)
            if resources.lack(config, board) is None:
                guess = resources.estimate(config, board)
                return (
                    f"{count} lanes take about {guess.luts:,} of {board.luts:,} LUTs and "
                    f"{guess.block_rams} of {board.block_rams} block RAMs"
                )
    return None
