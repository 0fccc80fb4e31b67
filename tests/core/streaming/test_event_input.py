# amaranth: UnusedElaboratable=no
"""An event input against its contract."""

from __future__ import annotations

from typing import Any

from core.harness import Bench
from core.streaming.windows import drawn

from lbq_hw.core.streaming.event_input import EventInput
from lbq_hw.sim.ends import Store
from lbq_hw.streaming import records
from lbq_hw.streaming.records import StreamRegion


def test_an_event_sets_its_levels_and_its_bit() -> None:
    program, *_ = drawn(2)
    c, rows = program.config, list(program.image[StreamRegion.ROWS])
    bench = Bench(EventInput(c))
    block: Any = bench.block
    events = [(0, 1, 0, 1), (1, 0, c.input_planes - 1, 0), (1, 1, 0, 1)]
    bench.add(Store(block.maps, [0b10] * c.map_rows, 1))
    bench.add(Store(block.rows, rows, 1))
    driver = bench.drive(block.i, [records.event_word(*event) for event in events])
    seen = bench.probe(
        en=block.o_maps.en, addr=block.o_maps.addr, data=block.o_maps.data,
        word=block.o_levels.addr, value=block.o_levels.data,
    )  # fmt: skip
    bench.run(extra=1)
    for cycle, (x, y, plane, value) in zip(driver.cycles, events, strict=True):
        written = {name: history[cycle] for name, history in seen.items()}
        word = rows[y] + x * c.input_planes + plane
        bits = 0b10 | 1 << x
        assert written == {"en": 1, "addr": y, "data": bits, "word": word, "value": value}
    assert driver.cycles == [1, 4, 7]
