"""Whether a board holds a core, or the weights of a network."""

from __future__ import annotations

from dataclasses import replace

from lbq_hw import families, isa
from lbq_hw.boards import Board
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.isa.record import SLICE
from lbq_hw.network import Network
from lbq_hw.resources.memories import fixed_blocks, sprams
from lbq_hw.resources.model import Estimate, estimate, least

FULL = 0.96  # of a fabric's LUTs; of a UP5K 0.957 was seen to route, 0.977 found no legal place
ROOMY = 0.9  # of them; above it, place and route takes long, and some seeds find no legal placement


def lack(config: CoreConfig, board: Board) -> tuple[int, int] | None:
    """How far a board is from holding a core; None if it holds the core.

    A core whose lower bound already exceeds the board counts as the farthest. The bound is quick,
    so the slower estimate is made only where the bound fits.
    """
    for far, guess in ((1, least), (1, _with_fixed), (0, estimate)):
        found = guess(config, board)
        luts = found.luts - int(FULL * board.luts)
        rams = found.block_rams - board.block_rams
        if short(found, board):
            return far, max(0, luts) + 100 * max(0, rams)
    return None


def _with_fixed(config: CoreConfig, board: Board) -> Estimate:
    """The lower bound, with the small memories of a core that differs in its neuron units."""
    bound = least(config, board)
    return replace(bound, block_rams=max(bound.block_rams, fixed_blocks(config, board)))


def short(guess: Estimate, board: Board) -> list[str]:
    """The resources that a board lacks, one sentence each."""
    found = guess.short(board)
    if not found and guess.luts > FULL * board.luts:
        found = [f"the core needs about {guess.luts:,} of {board.luts:,} LUTs: too full to route"]
    return found


def roomy(guess: Estimate, board: Board) -> bool:
    """Whether a core leaves place and route some room."""
    return guess.luts <= ROOMY * board.luts


def hopeless(network: Network, board: Board) -> str | None:
    """Weights that exceed all memory of a board, before anything is compiled: one sentence."""
    if board.family is None:
        return None
    family, needed = families.of(board), network.parameters * network.weight_bits
    have = board.block_rams * family.block_bits
    if family.single_port is not None:
        have += board.sprams * family.single_port.rows * family.single_port.bits
    if needed <= have:
        return None
    return f"the weights need {needed:,} bits, its memories have {have:,} ({needed - have:,} short)"


def rounded(config: CoreConfig, board: Board) -> CoreConfig:
    """The core with sizes raised to powers of two where memories have that room anyway: an index
    that cannot be too large needs no logic to check it. In a family whose cells are few, the core
    counts its cycles and nothing else; on a UP5K, whose clock is slow, it is compact.
    """
    names = ["side", *isa.TABLES, "channels"]
    if sprams(config, board):
        names.append("weight_rows")
    sizes: dict[str, int | Profile] = {
        name: 1 << (getattr(config, name) - 1).bit_length() for name in names
    }
    if board.family is not None and families.of(board).few_cells:
        sizes |= {"counters": 1, "counter_bits": SLICE}
    if board.sprams and not config.external:
        sizes["profile"] = Profile.COMPACT
    return config.with_(**sizes)
