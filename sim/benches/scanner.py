# amaranth: UnusedElaboratable=no
"""Scanner of every profile, on the plane memory that it reads, against events made bit by bit."""

from typing import Any

import cocotb
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from lbq_hw.core.memory.planes import PlaneMemory, SpreadPlanes
from lbq_hw.core.scan.scanner import Scanner
from lbq_hw.core.scan.spread_scanner import PairScanner, SpreadScanner
from lbq_hw.sim.benches.harness import Bench, Settings
from lbq_hw.sim.models.scanner import golden, opened, random_work

SHAPES: tuple[tuple[type[Scanner], dict[str, Any]], ...] = (
    (Scanner, {"lanes": 8, "word": 16, "summary": 8, "words": 64, "rows": 100}),
    (Scanner, {"lanes": 4, "word": 8, "summary": 4, "words": 32, "rows": 64}),
    (Scanner, {"lanes": 64, "word": 64, "summary": 32, "words": 64, "rows": 1 << 16}),
    (SpreadScanner, {"lanes": 16, "word": 16, "summary": 8, "words": 64, "rows": 512}),
    (SpreadScanner, {"lanes": 8, "word": 8, "summary": 4, "words": 32, "rows": 64}),
    (PairScanner, {"lanes": 16, "word": 16, "summary": 8, "words": 64, "rows": 512}),
    (PairScanner, {"lanes": 32, "word": 64, "summary": 4, "words": 64, "rows": 100}),
)


class ScannerOfMemory(wiring.Component):
    """A scanner and its memory: writes and requests in, events out."""

    def __init__(self, kind: type[Scanner], sizes: dict[str, Any]):
        planes = {name: sizes[name] for name in ("words", "word", "summary")}
        spread = issubclass(kind, SpreadScanner)
        self.memory: Any = (SpreadPlanes if spread else PlaneMemory)(**planes, granule=8)
        self.scanner: Any = kind(**sizes)
        super().__init__(
            {
                "i_write": self.memory.signature.members["i_write"],
                "i_request": self.scanner.signature.members["i_request"],
                "o_event": self.scanner.signature.members["o_event"],
            }
        )

    def elaborate(self: Any, _platform):
        m = Module()
        m.submodules.memory, m.submodules.scanner = memory, scanner = self.memory, self.scanner
        connect(m, flipped(self.i_write), memory.i_write)
        connect(m, flipped(self.i_request), scanner.i_request)
        connect(m, scanner.o_event, flipped(self.o_event))
        connect(m, memory.word, scanner.word)
        connect(m, memory.summary, scanner.summary)
        m.d.comb += memory.host.en.eq(0)
        return m


def block(shape: int) -> ScannerOfMemory:
    return ScannerOfMemory(*SHAPES[shape])


@cocotb.test()
async def events_of_random_requests(dut: Any) -> None:
    kind, sizes = SHAPES[Settings.from_env().shape]
    bench = await Bench.start(dut, ScannerOfMemory(kind, sizes))
    sizes = sizes | {"pairs": kind is PairScanner}
    requests, words = random_work(bench.random, sizes, 250 * bench.settings.length)
    whole = {"enable": (1 << sizes["word"] // 8) - 1, "first": 1}
    writes = [{"addr": address, "data": word, **whole} for address, word in enumerate(words)]
    await bench.until(bench.drive("i_write", writes))
    await bench.cycles(3)
    bench.drive("i_request", requests, stall=bench.stalls(0.2))
    bench.monitor("o_event", golden(requests, words, sizes), stall=bench.stalls(0.2), view=opened)
    await bench.finish()
