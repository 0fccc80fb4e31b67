# amaranth: UnusedElaboratable=no
"""The SDRAM controller with its calibration, down to the pins of a model of the chip."""

import dataclasses
from typing import Any

import cocotb
from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cocotb.triggers import RisingEdge

from lbq_hw import chips
from lbq_hw.chips import Chip
from lbq_hw.core.external.calibrate import Calibrate
from lbq_hw.isa.record import SLICE
from lbq_hw.sim.benches.harness import Bench, Settings
from lbq_hw.sim.sdram import MODEL, SimulatedMemory

# With a shorter wait and fewer rows; everything else is the same.
SMALL_16 = dataclasses.replace(chips.ULX3S, name="small 16", row_bits=5, power_up=20_000_000)
SMALL_32 = dataclasses.replace(
    chips.TANG_NANO_20K, name="small 32", row_bits=5, power_up=20_000_000
)
SHAPES: tuple[tuple[Chip, int, int], ...] = (
    (SMALL_16, 80_000_000, 1),
    (SMALL_16, 80_000_000, 3),
    (SMALL_32, 60_000_000, 1),
    (SMALL_32, 80_000_000, 2),
)
"""Chip, clock, and latency of the pins."""
VERILOG = MODEL.read_text(encoding="utf-8")
"""Sources that belong to the design."""
SIMULATORS = ("icarus",)
"""Under Verilator 5.49 the sequencer's ``more`` stays 0 in a read of 16 words; why is not known."""
COUNT_BITS = 16


class Runs(wiring.Component):
    """An external memory with its chip; of a run, `length` words are taken, and it is stopped.

    Members
    -------
    host : `HostMemoryPort`, flipped
    calibrated, violated : out
    go : in
        One cycle: a run of ``length`` words begins with the next ``aligned``.
    length : in
    o : stream of words
    """

    def __init__(self, shape: int) -> None:
        chip, clock_hz, latency = SHAPES[shape]
        word: Any = chip.data_bits
        self.memory: Any = SimulatedMemory(chip=chip, clock_hz=clock_hz, latency=latency)
        super().__init__(
            {
                "host": self.memory.signature.members["host"],
                "calibrated": Out(1),
                "violated": Out(1),
                "go": In(1),
                "length": In(COUNT_BITS),
                "o": Out(stream.Signature(word)),
            }
        )

    def elaborate(self: Any, _platform: Any) -> Module:
        m: Any = Module()
        m.submodules.memory = memory = self.memory
        tape, waits, left = memory.tape, Signal(), Signal(COUNT_BITS)
        connect(m, flipped(self.host), memory.host)
        m.d.comb += [
            self.calibrated.eq(tape.calibrated),
            self.violated.eq(memory.violated),
            tape.start.eq(waits & tape.aligned),
            tape.stop.eq(~tape.start & (left == 0)),
            self.o.valid.eq(tape.words.valid & (left != 0)),
            self.o.payload.eq(tape.words.payload),
            tape.words.ready.eq(self.o.ready | (left == 0)),
        ]
        with m.If(self.go):
            m.d.sync += waits.eq(1)
        with m.If(tape.start):
            m.d.sync += [waits.eq(0), left.eq(self.length)]
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += left.eq(left - 1)
        return m


def block(shape: int) -> Runs:
    return Runs(shape)


@cocotb.test()
async def slices_of_the_host_and_words_of_runs(dut: Any) -> None:
    shape = Settings.from_env().shape
    chip = SHAPES[shape][0]
    bench = await Bench.start(dut, Runs(shape))
    for _ in range(100_000):
        if dut.calibrated.value:
            break
        await RisingEdge(dut.clk)
    assert dut.calibrated.value, "the memory is not calibrated"
    each = SLICE // chip.data_bits
    length = 2 * chip.page_words + 9
    # The first slices are those of the runs, the others are anywhere.
    others = range(length, (chip.words - Calibrate.WORDS) // each)
    places = [*range(-(-length // each)), *bench.random.sample(others, 40)]
    slices = {place: bench.random.getrandbits(SLICE) for place in places}
    requests = [{"write": 1, "address": place, "data": data} for place, data in slices.items()]
    await bench.until(bench.drive(bench.block.host.request, requests, stall=bench.stalls(0.2)))
    mask = (1 << chip.data_bits) - 1
    words = [
        slices[number // each] >> number % each * chip.data_bits & mask for number in range(length)
    ]
    for turn in range(1, 1 + bench.settings.length):
        bench.random.shuffle(places)
        reads = [{"write": 0, "address": place, "data": 0} for place in places[:30]]
        answers = bench.expect(f"answers {turn}", [slices[each["address"]] for each in reads])
        for read in reads:
            await bench.until(bench.drive(bench.block.host.request, [read]))
            while not dut.host__answer__valid.value:
                await RisingEdge(dut.clk)
            answers.put(int(dut.host__answer__payload.value))
        board = bench.monitor("o", words, stall=bench.stalls(0.4))
        dut.length.value, dut.go.value = length, 1
        await bench.cycles(1)
        dut.go.value = 0
        await bench.until(board)
        await bench.cycles(50)
        bench.ends.pop()  # the monitor of this run
    assert not dut.violated.value
    await bench.finish()
