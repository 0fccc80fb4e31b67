# amaranth: UnusedElaboratable=no
"""Fields of view out of pixels: their taps, the end of a row, and an input that begins anew."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth import Module, ResetInserter
from core.harness import Bench
from core.pixels.pictures import LAYOUTS, layout, pixels, random_picture

from lbq_hw.core.pixels.windows import PixelWindows
from lbq_hw.sim.models.traffic import stalls

SHAPE = LAYOUTS["a stride that leaves rows over"]


def taps(picture: np.ndarray) -> list[list[int]]:
    """Of a picture of one channel and one frame, by `SHAPE`."""
    padded = np.pad(picture[0, 0], 1)
    rows, columns = SHAPE.outputs
    return [
        padded[2 * y : 2 * y + 3, 2 * x : 2 * x + 3].reshape(-1).tolist()
        for y in range(rows)
        for x in range(columns)
    ]


class Restarted(PixelWindows):
    """Windows that are reset as their contract asks for."""

    def elaborate(self, platform):
        inner = super().elaborate(platform)
        m = Module()
        m.submodules.inner = ResetInserter(self.restart)(inner)
        return m


def stream(picture: np.ndarray) -> list[dict[str, int]]:
    return [{"data": one, "first": at == 0} for at, one in enumerate(pixels(SHAPE, picture))]


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_every_field_of_view(rate: float) -> None:
    picture = random_picture(SHAPE, 1)
    block = PixelWindows(SHAPE)
    bench = Bench(block)
    bench.drive(block.i, stream(picture), stall=stalls(1, rate))
    rows, columns = SHAPE.outputs
    monitor = bench.monitor(block.o, rows * columns, stall=stalls(2, rate))
    history = bench.probe(last=block.last)
    bench.run(extra=60)
    assert [one["taps"] for one in monitor.payloads] == taps(picture)
    assert [one["row_end"] for one in monitor.payloads] == ([0] * (columns - 1) + [1]) * rows
    assert sum(history["last"]) == 1


def test_a_position_per_cycle() -> None:
    block = PixelWindows(SHAPE)
    bench = Bench(block)
    bench.drive(block.i, stream(random_picture(SHAPE, 1)))
    rows, columns = SHAPE.outputs
    monitor = bench.monitor(block.o, rows * columns)
    bench.run()
    width = SHAPE.padded[1]
    assert monitor.cycles == [
        (2 * y + 2) * width + 2 * x + 2 + 1 for y in range(rows) for x in range(columns)
    ]


def test_an_input_that_breaks_off_is_dropped_by_the_next_first_pixel() -> None:
    one, two = random_picture(SHAPE, 1), random_picture(SHAPE, 2)
    block = Restarted(SHAPE)
    bench = Bench(block)
    bench.drive(block.i, [*stream(one)[:29], *stream(two)], stall=stalls(1, 0.3))
    monitor = bench.monitor(block.o, None)
    bench.run(extra=60)
    assert [found["taps"] for found in monitor.payloads][-len(taps(two)) :] == taps(two)


def test_a_layout_that_does_not_fit_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"^pitch must be at least 9, the channels of a field of view, not 8$",
    ):
        layout(kernel=(3, 3), pitch=8)
    with pytest.raises(
        ValueError,
        match=r"^border_value must have one level per channel, and none without a border, "
        r"not \(1,\)$",
    ):
        layout(border_value=(1,))
