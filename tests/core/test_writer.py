# amaranth: UnusedElaboratable=no
"""Writer against the address arithmetic of the activation memory."""

from __future__ import annotations

import random
import re

import pytest
from amaranth.back import verilog
from core.harness import Bench, ports, stalls

from lbq_hw.core.payload import WriteInfo
from lbq_hw.core.writer import Writer

SIZES = [
    {"lanes": 4, "word": 8, "planes": 1},
    {"lanes": 8, "word": 8, "planes": 3},
    {"lanes": 16, "word": 64, "planes": 5},
    {"lanes": 32, "word": 32, "planes": 2},
]
PLANE_BITS = 10


def build(*, lanes: int, word: int, planes: int) -> Writer:
    write = WriteInfo(lanes=lanes, word=word, planes=planes, address_bits=PLANE_BITS + 1)
    return Writer(lanes=lanes, word=word, planes=planes, plane_bits=PLANE_BITS, write=write)


def random_planes(
    source: random.Random, count: int, *, lanes: int, word: int, planes: int
) -> list[dict]:
    """A layer's chunks at all places; some are followed by further timesteps."""
    granule = min(8, lanes)
    granules = 1 << source.randrange((lanes // granule).bit_length())
    layer = {"granules": granules, "planes": source.randrange(1, planes + 1)}
    layer["stride"] = source.randrange(20)
    payloads: list[dict] = []
    write: dict = {}
    for i in range(count):
        restart = int(i == 0 or source.randrange(3) == 0)
        if restart:
            place = source.randrange(0, word // granule, granules)
            write = layer | {"place": place, "first": int(place == 0)}
            write["addr"] = source.randrange(1 << PLANE_BITS - 1)
        levels = [source.getrandbits(lanes) for _ in range(planes)]
        payloads.append({"planes": levels, "restart": restart, "write": write})
    return payloads


def golden(payloads: list[dict], lanes: int) -> list[tuple[int, int, int, int, int]]:
    """Word, bit offset, length, bits and first flag of every write."""
    granule = min(8, lanes)
    writes = []
    frame = 0
    for payload in payloads:
        write = payload["write"]
        frame = 0 if payload["restart"] else frame + 1
        length = write["granules"] * granule
        for k in range(write["planes"]):
            addr = write["addr"] + (frame * write["planes"] + k) * write["stride"]
            bits = payload["planes"][k] % (1 << length)
            place = write["place"] * granule
            writes.append((addr % (1 << PLANE_BITS), place, length, bits, write["first"]))
    return writes


def decode(write: dict, lanes: int) -> tuple[int, int, int, int, int]:
    """What a write does, in golden's terms."""
    granule = min(8, lanes)
    enabled = [i for i in range(write["enable"].bit_length()) if write["enable"] >> i & 1]
    assert enabled == list(range(enabled[0], enabled[-1] + 1))
    place, length = enabled[0] * granule, len(enabled) * granule
    bits = (write["data"] >> place) % (1 << length)
    return write["addr"], place, length, bits, write["first"]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("layer", range(4))
def test_writes_equal_golden_under_random_stalls(sizes: dict, rate: float, layer: int) -> None:
    payloads = random_planes(random.Random(layer), 25, **sizes)
    expected = golden(payloads, sizes["lanes"])
    writer = build(**sizes)
    bench = Bench(writer)
    bench.drive(writer.i, payloads, stall=stalls(1, rate))
    writes = bench.monitor(writer.o, len(expected), stall=stalls(2, rate))
    bench.run(extra=5)
    assert [decode(write, sizes["lanes"]) for write in writes.payloads] == expected


def test_writes_follow_two_cycles_later_without_a_gap() -> None:
    payloads = random_planes(random.Random(6), 40, **SIZES[2])
    writer = build(**SIZES[2])
    bench = Bench(writer)
    taken = bench.drive(writer.i, payloads)
    counts = [payload["write"]["planes"] for payload in payloads]
    writes = bench.monitor(writer.o, sum(counts))
    busy = bench.probe(busy=writer.busy)["busy"]
    bench.run(extra=2)
    first = taken.cycles[0]
    assert writes.cycles == list(range(first + 2, first + 2 + sum(counts)))
    assert taken.cycles == [first + sum(counts[:i]) for i in range(len(counts))]
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
