# amaranth: UnusedElaboratable=no
"""UartReceiver and UartTransmitter against the waveform of a serial line."""

from typing import Any

import cocotb
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped
from cocotb.triggers import RisingEdge

from lbq_hw.core.host.uart import UartReceiver, UartTransmitter
from lbq_hw.isa.link import BYTE_BITS
from lbq_hw.sim.benches.harness import Bench, Settings

SHAPES = ({"divisor": 4}, {"divisor": 5}, {"divisor": 12})
"""Cycles per bit; the block is the same."""


class Uart(wiring.Component):
    """Both directions, with one divisor."""

    def __init__(self) -> None:
        self.receiver: Any = UartReceiver()
        self.transmitter: Any = UartTransmitter()
        received, sent = (each.signature.members for each in (self.receiver, self.transmitter))
        super().__init__(
            {
                **{name: received[name] for name in ("divisor", "rx", "o")},
                **{name: sent[name] for name in ("i", "tx", "busy")},
            }
        )

    def elaborate(self: Any, _platform: Any) -> Module:
        m: Any = Module()
        m.submodules.receiver = receiver = self.receiver
        m.submodules.transmitter = transmitter = self.transmitter
        connect(m, receiver.o, flipped(self.o))
        connect(m, flipped(self.i), transmitter.i)
        m.d.comb += [
            receiver.divisor.eq(self.divisor),
            transmitter.divisor.eq(self.divisor),
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            self.busy.eq(transmitter.busy),
        ]
        return m


def block(shape: int) -> Uart:
    del shape
    return Uart()


def line(byte: int, *, stop: int = 1) -> list[int]:
    """The bits of a byte: the start bit, eight data bits, lowest first, the stop bit."""
    return [0, *(byte >> place & 1 for place in range(8)), stop]


@cocotb.test()
@cocotb.parametrize(rate=[0.98, 1.0, 1.02])
async def bytes_of_a_line_that_may_be_off_are_received(dut: Any, rate: float) -> None:
    bench, cycles = await start(dut)
    sent = [bench.random.getrandbits(8) for _ in range(20 * bench.settings.length)]
    broken = [int(bench.random.random() < 0.2) for _ in sent]
    expected = [{"data": data, "broken": bad} for data, bad in zip(sent, broken, strict=True)]
    bench.monitor("o", expected)
    now, due = 0, 0.0
    for data, bad in zip(sent, broken, strict=True):
        pause = bench.random.randrange(1, 4)  # after a byte without a stop bit, the line is idle
        for bit in [*line(data, stop=1 - bad), *[1] * pause]:
            dut.rx.value = bit
            due += cycles * rate
            await bench.cycles(round(due) - now)
            now = round(due)
    await bench.finish()


@cocotb.test()
async def a_break_is_one_byte_and_a_glitch_is_none(dut: Any) -> None:
    bench, cycles = await start(dut)
    bench.monitor("o", [{"data": 0, "broken": 1}, {"data": 0x41, "broken": 0}])
    await drive(bench, [0] * 30 + [1] * 2, cycles)
    dut.rx.value = 0
    await bench.cycles(max(1, cycles // 2 - 1))
    await drive(bench, [1] * 12, cycles)
    await drive(bench, [*line(0x41), 1], cycles)
    await bench.finish()


@cocotb.test()
async def bytes_are_sent_without_a_gap(dut: Any) -> None:
    bench, cycles = await start(dut)
    given = [bench.random.getrandbits(8) for _ in range(20 * bench.settings.length)]
    expected = [bit for data in given for bit in line(data) for _ in range(cycles)]
    board = bench.expect("tx", expected)
    bench.drive("i", given)
    while not dut.busy.value:
        await RisingEdge(dut.clk)
    for _ in range(len(given) * BYTE_BITS * cycles):
        board.put(int(dut.tx.value))
        await RisingEdge(dut.clk)
    await bench.finish()
    assert (dut.tx.value, dut.busy.value) == (1, 0)


async def start(dut: Any) -> tuple[Bench, int]:
    """An idle line, and its cycles per bit."""
    cycles = SHAPES[Settings.from_env().shape]["divisor"]
    bench = await Bench.start(dut, Uart())
    dut.rx.value, dut.divisor.value = 1, cycles
    await bench.cycles(14 * cycles)  # the line was low after reset
    return bench, cycles


async def drive(bench: Bench, bits: list[int], cycles: int) -> None:
    for bit in bits:
        bench.dut.rx.value = bit
        await bench.cycles(cycles)
