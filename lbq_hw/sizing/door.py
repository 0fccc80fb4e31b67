"""The door of a core: its resources, and whether pixels wait in a queue behind it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbq_hw import resources
from lbq_hw.boards import Board
from lbq_hw.compiler import Program
from lbq_hw.compiler.patches import Patches
from lbq_hw.host.estimate import Line, best_line
from lbq_hw.isa import link, regions
from lbq_hw.isa.door import MOST_RESULTS, Opening
from lbq_hw.isa.pixels import PixelLayout
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region
from lbq_hw.network import Network
from lbq_hw.resources import Estimate


def line_of(board: Board, clock_hz: int) -> Line:
    """The line at the highest rate that both the board's bridge and a core's clock support."""
    bridge = board.bridge
    if bridge is None:
        return best_line((), clock_hz=clock_hz, baud=board.baud)
    return best_line(bridge.rates, clock_hz=clock_hz, baud=board.baud, latency=bridge.latency)


def faster_clock(board: Board, clock_hz: int) -> int | None:
    """The nearest lower clock at which the line would be faster than at this one, since a line's
    rate is the clock divided by an integer; None if there is none.
    """
    rates = [] if board.bridge is None else board.bridge.rates
    for rate in sorted(rates, reverse=True):
        if rate <= line_of(board, clock_hz).baud:
            return None
        if (divisor := clock_hz // rate) >= link.LEAST_DIVISOR:
            return divisor * rate
    return None


def waits(network: Network, board: Board, *, clock_hz: int, cycles: float) -> bool:
    """Whether the next pixels would wait for a run, if they had no queue. While a short run is
    under way, the frame after its last pixel is still on the line.
    """
    words = min(_layout(network, None, SLICE).words, link.FRAME_WORDS)
    return cycles > 4 * words * link.BYTE_BITS / line_of(board, clock_hz).baud * clock_hz


def taken(
    network: Network, patches: Patches | None, board: Board, *, word: int, queue: bool
) -> Estimate:
    """The approximate resources of a door for a core with words of so many bits, which reads the
    `patches`, or the input as it is.
    """
    pixels = _layout(network, patches, word)
    opening = Opening(pixels=pixels, results=1, queue=pixels.words + 1 if queue else 0)
    return resources.of_door(opening, board)


def beside(board: Board, share: Estimate) -> Board:
    """The resources of a board that a door leaves."""
    return replace(
        board, luts=board.luts - share.luts, block_rams=board.block_rams - share.block_rams
    )


def opening_of(program: Program, *, queue: bool) -> Opening | None:
    """The parameters of a core's door; None if a result would have too many slices."""
    entries = program.logits(np.arange(program.logit_words)).max() + 1
    slices = regions.slices(program.config)[Region.LOGITS] * int(entries)
    if slices > MOST_RESULTS:
        return None
    pixels = program.pixels
    return Opening(pixels=pixels, results=slices, queue=pixels.words + 1 if queue else 0)


def _layout(network: Network, patches: Patches | None, word: int) -> PixelLayout:
    """The layout of the pixels before the network is compiled, without its place in memory."""
    found = network.input
    channels, height, width = found.shape
    return PixelLayout(
        channels=channels,
        height=height,
        width=width,
        bits=found.bits,
        frames=1 if found.static else network.timesteps,
        border=found.border,
        border_value=tuple(found.border_value),
        kernel=(1, 1) if patches is None else patches.kernel,
        stride=(1, 1) if patches is None else patches.stride,
        padding=(0, 0) if patches is None else patches.padding,
        base=0,
        pitch=channels if patches is None else patches.channels,
        row_words=1,
        word=word,
    )
