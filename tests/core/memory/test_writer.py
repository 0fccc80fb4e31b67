# amaranth: UnusedElaboratable=no
"""Writer against the address arithmetic of the activation memory."""

from __future__ import annotations

import random
import re

import pytest
from amaranth.back import verilog
from core.harness import Bench

from lbq_hw.core.memory.writer import Writer
from lbq_hw.core.payload import WriteInfo
from sim.models.traffic import apart, stalls
from sim.models.writer import PLANE_BITS, build, decode, golden, random_planes
from sim.verilog import ports

SIZES = [
    {"lanes": 4, "word": 8, "planes": 1},
    {"lanes": 8, "word": 8, "planes": 3},
    {"lanes": 16, "word": 64, "planes": 5},
    {"lanes": 32, "word": 32, "planes": 2},
]


def counts(payloads: list[dict]) -> list[int]:
    """Planes to write of each payload: of one layer, all the same."""
    return [payload["write"]["planes"] for payload in payloads]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("layer", range(4))
def test_writes_equal_golden_under_random_stalls(sizes: dict, rate: float, layer: int) -> None:
    payloads = random_planes(random.Random(layer), 25, **sizes)
    expected = golden(payloads, sizes["lanes"])
    writer = build(**sizes)
    bench = Bench(writer)
    bench.drive(writer.i, payloads, stall=apart(counts(payloads)[0], stalls(1, rate)))
    writes = bench.monitor(writer.o, len(expected))
    bench.run(extra=5)
    assert [decode(write, sizes["lanes"]) for write in writes.payloads] == expected


def test_writes_follow_two_cycles_later_without_a_gap() -> None:
    payloads = random_planes(random.Random(6), 40, **SIZES[2])
    writer = build(**SIZES[2])
    bench = Bench(writer)
    planes = counts(payloads)
    taken = bench.drive(writer.i, payloads, stall=apart(planes[0]))
    writes = bench.monitor(writer.o, sum(planes))
    busy = bench.probe(busy=writer.busy)["busy"]
    bench.run(extra=2)
    first = taken.cycles[0]
    assert taken.cycles == [first + sum(planes[:i]) for i in range(len(planes))]
    assert writes.cycles == list(range(first + 2, first + 2 + sum(planes)))
    busy_cycles = [cycle for cycle, bit in enumerate(busy) if bit]
    assert busy_cycles == list(range(first + 1, writes.cycles[-1] + 1))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"lanes": 12}, ValueError, "lanes must be a power of two, not 12"),
        ({"word": 4}, ValueError, "word must be at least 8, not 4"),
        ({"lanes": 32}, ValueError, "word must be at least the 32 lanes, not 16"),
        ({"planes": 0}, ValueError, "planes must be at least 1, not 0"),
        ({"plane_bits": 2.0}, TypeError, "plane_bits must be an integer, not 2.0"),
        ({"write": None}, TypeError, "write must be a WriteInfo, not None"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(change: dict, error: type, text: str) -> None:
    write = WriteInfo(lanes=8, word=16, planes=3, address_bits=PLANE_BITS)
    sizes = {"lanes": 8, "word": 16, "planes": 3, "plane_bits": PLANE_BITS, "write": write}
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        Writer(**sizes | change)


def test_the_writer_converts_to_verilog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    writer = build(lanes=8, word=32, planes=3)
    assert "o__payload" in verilog.convert(writer, ports=ports(writer))
