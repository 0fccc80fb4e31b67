# amaranth: UnusedElaboratable=no
"""The UART against the waveform of a serial line."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from core.harness import Bench

from lbq_hw.core.host.uart import UartReceiver, UartTransmitter
from lbq_hw.isa.link import divisor


def waveform(data: list[int], cycles: float, *, stop: int = 1) -> list[int]:
    """The line, one value per cycle, of bytes with bits of `cycles` cycles, not a whole number."""
    bits = [1, 1]
    for byte in data:
        bits += [0, *(byte >> place & 1 for place in range(8)), stop]
    bits += [1, 1]
    edges = [round(cycles * number) for number in range(len(bits) + 1)]
    return [bit for bit, (begin, end) in zip(bits, pairwise(edges), strict=True)
            for _ in range(begin, end)]  # fmt: skip


def receive(line: list[int], cycles: int) -> list[dict]:
    block = UartReceiver()
    bench = Bench(block)
    bench.script(
        {"rx": block.rx, "divisor": block.divisor},
        [{"rx": bit, "divisor": cycles} for bit in [1] * 4 + line + [1] * 4 * cycles],
    )
    received = bench.monitor(block.o)
    bench.run(limit=100_000)
    return received.payloads


@pytest.mark.parametrize("cycles", [4, 5, 13])
@pytest.mark.parametrize("rate", [0.98, 1.0, 1.02])
def test_bytes_of_a_line_that_is_two_percent_off_are_received(cycles: int, rate: float) -> None:
    source = random.Random(cycles)
    data = [0, 0xFF, 0x55, 0xAA, *(source.randrange(256) for _ in range(6))]
    received = receive(waveform(data, cycles * rate), cycles)
    assert received == [{"data": byte, "broken": 0} for byte in data]


@pytest.mark.parametrize("cycles", [4, 5, 8, 13])
def test_a_byte_is_given_in_the_middle_of_its_stop_bit_and_two_cycles(cycles: int) -> None:
    block = UartReceiver()
    bench = Bench(block)
    line = waveform([0x55], cycles)
    bench.script(
        {"rx": block.rx, "divisor": block.divisor}, [{"rx": bit, "divisor": cycles} for bit in line]
    )
    received = bench.monitor(block.o)
    bench.run()
    assert received.cycles == [line.index(0) + 9 * cycles + cycles // 2 + 2]


def test_a_byte_without_a_stop_bit_is_marked_and_a_break_is_one_byte() -> None:
    broken = receive(waveform([0x41], 8, stop=0), 8)
    assert broken == [{"data": 0x41, "broken": 1}]
    assert receive([0] * 3000 + waveform([3], 8), 8) == [
        {"data": 0, "broken": 1},
        {"data": 3, "broken": 0},
    ]


def test_a_glitch_shorter_than_half_a_bit_is_no_byte() -> None:
    assert receive([0] * 5 + [1] * 200, 16) == []


@pytest.mark.parametrize("cycles", [pytest.param(0, marks=pytest.mark.slow), 2, 3])
def test_a_divisor_that_is_too_small_still_sees_a_break(cycles: int) -> None:
    received = receive([0] * 11 * (cycles or 4096), cycles)
    assert {"data": 0, "broken": 1} in received


@pytest.mark.parametrize("cycles", [4, 7])
def test_bytes_are_sent_without_a_gap(cycles: int) -> None:
    source = random.Random(cycles)
    data = [0, 0xFF, *(source.randrange(256) for _ in range(6))]
    block = UartTransmitter()
    bench = Bench(block)
    bench.script({"divisor": block.divisor}, [{"divisor": cycles}] * (10 * cycles * 9))
    bench.drive(block.i, data)
    seen = bench.probe(tx=block.tx, busy=block.busy)
    bench.run(limit=10_000)
    line = waveform(data, cycles)[2 * cycles :]
    first = seen["tx"].index(0)
    assert seen["tx"][first : first + len(line)] == line
    busy = [cycle for cycle, bit in enumerate(seen["busy"]) if bit]
    assert busy == list(range(first, first + 10 * cycles * len(data)))


@pytest.mark.parametrize(
    ("clock_hz", "baud", "cycles"),
    [(12_000_000, 1_000_000, 12), (12_000_000, 3_000_000, 4), (25_000_000, 115_200, 217)],
)
def test_a_divisor_is_the_nearest(clock_hz: int, baud: int, cycles: int) -> None:
    assert divisor(clock_hz=clock_hz, baud=baud) == cycles


@pytest.mark.parametrize(
    ("clock_hz", "baud", "error", "text"),
    [
        (12_000_000, 4000000, ValueError, "baud must be 2931..3000000 at 12000000 Hz, not 4000000"),
        (12_000_000, 1200, ValueError, "baud must be 2931..3000000 at 12000000 Hz, not 1200"),
        (12_000_000, 2_600_000, ValueError, "baud must be within 2 % of 12000000 Hz over a whole "
         "number, not 2600000"),
        (12e6, 1_000_000, TypeError, "clock_hz must be an integer, not 12000000.0"),
        (12_000_000, 0, ValueError, "baud must be at least 1, not 0"),
    ],
)  # fmt: skip
def test_rates_that_a_clock_does_not_give(
    clock_hz: int, baud: int, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        divisor(clock_hz=clock_hz, baud=baud)
