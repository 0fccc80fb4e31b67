"""Cores that read their weights from external memory and fit a board, with their cycles.

More lanes compute faster. But if the lanes wait for weights, fewer lanes may be as fast, so the two
largest numbers of lanes that fit are tried. Weight memory and partial sums share the block RAMs
that the activations leave: every division that fills them is planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from lbq_hw import families, resources
from lbq_hw.boards import Board
from lbq_hw.chips.timing import ReaderTiming, reader_timing
from lbq_hw.compiler import CompileError, smallest_for
from lbq_hw.compiler.draft import draft
from lbq_hw.compiler.passes import PlanError, plan
from lbq_hw.compiler.passes.demand import Block, LayerDemand
from lbq_hw.config import LEAST_PAIR_LANES, CoreConfig
from lbq_hw.network import Network

TABLES = {"layers": 8, "paths": 16, "segments": 64, "runs": 128}
"""Entries: the records of about four passes."""
TILES = 4
"""Tiles, at least, whose parameters are on the chip together."""
_LANES = (256, 128, 64, 32, 16, 8)
_WIDTHS = 2
_SOONEST = (16, 8, 64)  # lanes with which a core fits, if any does
_ROWS = (4096, 2048, 1024, 512, 256, 128)
_SUMS = (8192, 4096, 2048, 1024, 512, 256)
_PAIR_RAMS = 2  # block RAMs that pairs may cost
_LEAST = {"weight_rows": _ROWS[-1], "partial_words": _SUMS[-1]}


def candidates(
    network: Network,
    board: Board,
    *,
    lanes: int | None,
    weight_bits: int | None,
    busy: Sequence[float],
    problems: list[str],
) -> Iterator[tuple[CoreConfig, float]]:
    """Cores with the most lanes that fit, and with half of them, and their cycles per image.

    `busy`: events of each layer, as a multiple of the assumed number. `problems` receives the
    reasons why the last core that was tried does not fit.
    """
    assert board.chip is not None
    timing = reader_timing(board.chip, board.target_hz)
    fitting, widest = 0, max(layer.shape[0] for layer in network.layers)
    for count in [lanes] if lanes else [n for n in _LANES if n < 2 * widest or n == _LANES[-1]]:
        fixed = {"external": timing.word_bits, "word": count, **TABLES}
        fixed["channels"] = max(TILES, -(-widest // count)) * count
        fixed |= {} if weight_bits is None else {"weight_bits": weight_bits}
        made = [
            (config, cycles)
            for config in _fitting(network, board, count, fixed, problems)
            if (cycles := _planned(network, config, timing, busy, problems)) is not None
        ]
        yield from made
        fitting += bool(made)
        if fitting == _WIDTHS:
            return


def holds(network: Network, board: Board) -> bool:
    """Whether any such core fits; faster than finding the best core."""
    assert board.chip is not None
    if network.parameters * network.weight_bits > 8 * board.chip.size_bytes:
        return False
    events = [1.0] * len(network.layers)
    for count in _SOONEST:
        fixed = {"lanes": count, "weight_bits": None, "busy": events, "problems": []}
        if next(candidates(network, board, **fixed), None) is not None:
            return True
    return False


def _fitting(
    network: Network, board: Board, lanes: int, fixed: dict[str, int], problems: list[str]
) -> Iterator[CoreConfig]:
    """Cores that fit, with the most neuron units, in which neither the weight memory nor the
    partial sums can grow unless the other shrinks.
    """
    bits = fixed.get("weight_bits", network.weight_bits)
    for units in (lanes // 4, lanes // 8, lanes // 16):
        found: list[tuple[int, int]] = []
        rough: CoreConfig | None = None
        rest = (0, 0)  # LUTs and block RAMs beyond the lower bound: about the same for all sizes
        for rows, sums in product(_ROWS, _SUMS):
            if units < 1 or any(rows <= more and sums <= most for more, most in found):
                continue
            sizes = {"weight_rows": rows, "partial_words": sums, "units": units}
            sizes["pairs"] = int(_may_pair(board, lanes, bits, rows))
            if rough is not None and _short(rough.with_(**sizes), board, rest, problems):
                continue  # before it is drafted
            try:
                made = smallest_for(network, lanes=lanes, **fixed, **sizes)
            except CompileError as error:
                problems[:] = error.violations
                if not sizes.keys() & error.changes.keys():
                    return  # other sizes would not help
                continue
            rough = config = resources.rounded(made, board)
            if _short(config.with_(**_LEAST), board, rest, problems):
                return
            if _short(config, board, rest, problems):
                continue
            if board.family is not None:
                least, guess = resources.least(config, board), resources.estimate(config, board)
                rest = (guess.luts - least.luts, guess.block_rams - least.block_rams)
                if short := resources.short(guess, board):
                    problems[:] = short
                    continue
            found.append((rows, sums))
            yield config
        if found:
            return


def _may_pair(board: Board, lanes: int, bits: int, rows: int) -> bool:
    """Whether even and odd weight rows take hardly more block RAMs apart than together."""
    if board.family is None or lanes < LEAST_PAIR_LANES:
        return lanes >= LEAST_PAIR_LANES
    together, apart = (
        resources.blocks(
            resources.Memory(name="", depth=depth, width=lanes * bits, granule=lanes * bits),
            families.of(board),
        )
        for depth in (rows, rows // 2)
    )
    return 2 * apart <= together + _PAIR_RAMS


def _short(config: CoreConfig, board: Board, rest: tuple[int, int], problems: list[str]) -> bool:
    """Whether a core is too large by its lower bound and `rest`, which is quick to check."""
    if board.family is None:
        return False
    guess = resources.least(config, board)
    guess = replace(guess, luts=guess.luts + rest[0], block_rams=guess.block_rams + rest[1])
    found = resources.short(guess, board)
    problems[:] = found or problems
    return bool(found)


def _planned(
    network: Network,
    config: CoreConfig,
    timing: ReaderTiming,
    busy: Sequence[float],
    problems: list[str],
) -> float | None:
    """Cycles per image; None if a layer cannot be cut."""
    drafted = draft(network, config)
    demands = tuple(_scaled(*pair) for pair in zip(drafted.demands, busy, strict=True))
    try:
        return float(plan(replace(drafted, demands=demands), config, timing).layers[-1].end)
    except PlanError as error:
        problems[:] = [str(error)]
        return None


def _scaled(demand: LayerDemand, factor: float) -> LayerDemand:
    def scale(blocks: Sequence[Block]) -> tuple[Block, ...]:
        return tuple(replace(block, events=block.events * factor) for block in blocks)

    return replace(demand, blocks=scale(demand.blocks), resident=scale(demand.resident))
