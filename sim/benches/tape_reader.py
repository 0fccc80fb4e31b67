# amaranth: UnusedElaboratable=no
"""TapeReader, the core's memory reader, against the items of random tapes."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from lbq_hw.core.external.tape_reader import TapeReader
from lbq_hw.isa import Error, tape
from lbq_hw.sim.benches.harness import Bench, Settings
from lbq_hw.sim.models.tapes import CORE, random_items, words_of, written

SHAPES = (CORE, CORE.with_(external=32))


def block(shape: int) -> TapeReader:
    return TapeReader(SHAPES[shape])


class Passes:
    """In place of the walker: executes the allowed passes in order, each for a random time."""

    done = True

    def __init__(self, reader: TapeReader, seed: int) -> None:
        self.reader: Any = reader
        self.samples = [self.reader.allow]
        self.random = random.Random(seed)
        self.allowed, self.begun, self.left = 0, 0, 0

    def set(self, ctx: Any) -> None:
        if not self.left and self.begun < self.allowed:
            self.begun += 1
            self.left = self.random.choice((1, 5, 60))
        ctx.set(self.reader.begun, self.begun)
        ctx.set(self.reader.resting, not self.left)

    def see(self, cycle: int, allow: int) -> None:
        del cycle
        self.left = max(0, self.left - 1)
        self.allowed += allow


class Slices:
    """Sees what is written."""

    done = True

    def __init__(self, reader: Any, board: Any) -> None:
        self.samples = [reader.written, reader.addr, reader.data]
        self.board = board

    def set(self, ctx: Any) -> None:
        """Drive nothing."""

    def see(self, cycle: int, regions: int, address: int, data: int) -> None:
        del cycle
        if regions:
            self.board.put({"regions": regions, "address": address, "data": data})


@cocotb.test()
async def slices_of_a_random_tape(dut: Any) -> None:
    config = SHAPES[Settings.from_env().shape]
    bench = await Bench.start(dut, TapeReader(config))
    count = 8 * bench.settings.length
    items = random_items(bench.random, config, count)
    expected = [
        {"regions": 1 << region, "address": address, "data": data}
        for region, address, data in written(config, items)
    ]
    board = bench.expect("slices", expected)
    passes = await begin(bench, board, tape.encode(config, items))
    ends = bench.expect("ended, error, passes", [[1, Error.NONE.value, count]])
    ends.put([int(dut.ended.value), int(dut.error.value), passes.allowed])
    await bench.finish()


@cocotb.test()
async def a_flipped_bit_is_found_by_the_crc(dut: Any) -> None:
    config = SHAPES[Settings.from_env().shape]
    bench = await Bench.start(dut, TapeReader(config))
    items = random_items(bench.random, config, 3)
    data = bytearray(tape.encode(config, items))
    last = len(tape.joined(config, [tape.head(config, 0), *items])) - 1  # of the last pass' CRC
    data[last] ^= 1 << bench.random.randrange(8)
    expected = [
        {"regions": 1 << region, "address": address, "data": data}
        for region, address, data in written(config, items)
    ]
    await begin(bench, bench.expect("slices", expected), bytes(data))
    ends = bench.expect("ended, error", [[0, Error.CRC.value]])
    ends.put([int(dut.ended.value), int(dut.error.value)])
    await bench.finish()


async def begin(bench: Bench, board: Any, data: bytes) -> Passes:
    """Start, and give the words of a tape until the reader is no longer busy."""
    dut = bench.dut
    passes = bench.add(Passes(bench.block, bench.random.getrandbits(32)))
    bench.add(Slices(bench.block, board))
    dut.start.value = 1
    await bench.cycles(1)
    dut.start.value = 0
    words = words_of(data, len(bench.block.i.payload))
    given = bench.drive("i", words, stall=bench.stalls(0.3))
    await bench.cycles(2)
    for _ in range(40_000):
        if not dut.busy.value:
            break
        await RisingEdge(dut.clk)
    await bench.until(given)  # the rest is forgotten
    return passes
