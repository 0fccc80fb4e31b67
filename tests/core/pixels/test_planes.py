# amaranth: UnusedElaboratable=no
"""Fields of view become slices of plane words, in the cycles of the contract."""

from __future__ import annotations

from core.harness import Bench
from core.pixels.pictures import layout

from lbq_hw.core.pixels.planes import PixelPlanes

SHAPE = layout(width=3, height=2, bits=2, pitch=16)


def test_slices_and_their_cycles() -> None:
    block = PixelPlanes(SHAPE)
    bench = Bench(block)
    windows = [{"taps": [value], "row_end": at % 3 == 2} for at, value in enumerate([1, 2, 3] * 2)]
    bench.drive(block.i, windows)
    monitor = bench.monitor(block.o, 8)
    bench.run()
    base, plane = SHAPE.base, 2 * SHAPE.row_slices
    row = [(0, 1), (plane, 1 << 16), (1, 1), (plane + 1, 1)]
    wanted = [(base + at, bits) for at, bits in row]
    wanted += [(at + SHAPE.row_slices, bits) for at, bits in wanted]
    assert [(one["address"], one["data"]) for one in monitor.payloads] == wanted
    # Two windows of a cycle each, two slices; one window, zeros, two slices.
    first = [2, 3, 6, 7]
    assert monitor.cycles == [*first, *(at + 8 for at in first)]
