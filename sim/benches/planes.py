# amaranth: UnusedElaboratable=no
"""PlaneMemory of every profile against a list of words and flags."""

from __future__ import annotations

from typing import Any

import cocotb

from lbq_hw.core.memory.planes import PlaneMemory, SpreadPlanes
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.sim.benches.harness import Bench, Settings
from lbq_hw.sim.models.planes import golden, random_writes

SHAPES: tuple[tuple[type[PlaneMemory], dict[str, Any]], ...] = (
    (PlaneMemory, {"words": 24, "word": 16, "summary": 8, "granule": 8}),
    (PlaneMemory, {"words": 8, "word": 8, "summary": 4, "granule": 4}),
    (PlaneMemory, {"words": 64, "word": 128, "summary": 16, "granule": 8}),
    (SpreadPlanes, {"words": 24, "word": 16, "summary": 8, "granule": 8}),
    (SpreadPlanes, {"words": 64, "word": 64, "summary": 32, "granule": 8}),
)


def block(shape: int) -> PlaneMemory:
    kind, sizes = SHAPES[shape]
    return kind(**sizes)


@cocotb.test()
async def words_and_flags_after_random_writes(dut: Any) -> None:
    kind, sizes = SHAPES[Settings.from_env().shape]
    part = {name: sizes[name] for name in ("words", "word", "granule")}
    bench = await Bench.start(dut, kind(**sizes))
    writes: list[dict] = []
    for _ in range(3 * bench.settings.length):
        fresh = list(random_writes(bench.random, 60, **part))
        writes += fresh
        await bench.until(bench.drive("i_write", fresh, stall=bench.stalls(0.3)))
        await bench.cycles(3)
        words, flags = golden(writes, **part)
        size = sizes["summary"]
        spans = [flags[at : at + size] for at in range(0, sizes["words"], size)]
        packed = [sum(flag << i for i, flag in enumerate(span)) for span in spans]
        for port, expected in (("word", words), ("host", words), ("summary", packed)):
            board = bench.expect(port, expected)
            for address in range(len(expected)):
                board.put(await read(bench, port, address))
    await bench.finish()


async def read(bench: Bench, port: str, address: int) -> int:
    """Enable a read port for one cycle; its data in the cycle of the contract."""
    far = isinstance(bench.block, SpreadPlanes) and port != "summary"
    enable = getattr(bench.dut, f"{port}__en")
    getattr(bench.dut, f"{port}__addr").value = address
    enable.value = 1
    await bench.cycles(1)
    enable.value = 0
    await bench.cycles(SpreadMemory.LATENCY if far else 1)
    return int(getattr(bench.dut, f"{port}__data").value)
