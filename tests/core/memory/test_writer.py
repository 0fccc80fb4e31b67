# amaranth: UnusedElaboratable=no
"""Writer against the address arithmetic of the activation memory."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from amaranth.back import verilog
from core.harness import Bench

from lbq_hw.config import Profile
from lbq_hw.core.memory.writer import CompactWriter, Writer
from lbq_hw.sim.models.traffic import Stall, apart, stalls
from lbq_hw.sim.models.writer import PLANE_BITS, build, decode, golden, layouts, random_planes
from lbq_hw.sim.verilog import ports

SIZES = [
    {"lanes": 4, "word": 8, "planes": 1},
    {"lanes": 8, "word": 8, "planes": 3},
    {"lanes": 16, "word": 64, "planes": 5},
    {"lanes": 32, "word": 32, "planes": 2},
]


class LatePlanes:
    """Gives plane k of what was taken k + 1 cycles later, and noise in all other cycles."""

    def __init__(self, writer: Any, payloads: list[dict]) -> None:
        self.planes, self.samples = writer.planes, [writer.i.valid]
        self.left = [payload["planes"] for payload in payloads]
        self.age = len(self.planes)
        self.random = random.Random(3)
        self.done = True

    def set(self, ctx: Any) -> None:
        values = [self.random.getrandbits(len(plane)) for plane in self.planes]
        if self.age < len(values):
            values[self.age] = self.now[self.age]
        ctx.set(self.planes, values)

    def see(self, cycle: int, valid: int) -> None:
        del cycle
        self.age += 1
        if valid:
            self.age, self.now = 0, self.left.pop(0)


def drive(bench: Bench, writer: Any, payloads: list[dict], stall: Stall) -> Any:
    """Feed the writer; a compact one has its planes from elsewhere."""
    if not isinstance(writer, CompactWriter):
        return bench.drive(writer.i, payloads, stall=stall)
    bench.add(LatePlanes(writer, payloads))
    heads = [{name: payload[name] for name in ("restart", "write")} for payload in payloads]
    return bench.drive(writer.i, heads, stall=stall)


profiles = pytest.mark.parametrize("profile", [Profile.STANDARD, Profile.COMPACT])


@profiles
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_writes_equal_golden_under_random_stalls(
    sizes: dict, rate: float, seed: int, profile: Profile
) -> None:
    layer, payloads = random_planes(random.Random(seed), 25, **sizes)
    expected = golden(layer, payloads, sizes["lanes"])
    writer = build(**sizes, profile=profile)
    bench = Bench(writer)
    bench.hold((writer.layer, layer))
    drive(bench, writer, payloads, apart(layer["planes"], stalls(1, rate)))
    writes = bench.monitor(writer.o, len(expected))
    bench.run(extra=5)
    assert [decode(write, sizes["lanes"]) for write in writes.payloads] == expected


@profiles
def test_writes_follow_two_cycles_later_without_a_gap(profile: Profile) -> None:
    layer, payloads = random_planes(random.Random(6), 40, **SIZES[2])
    writer = build(**SIZES[2], profile=profile)
    bench = Bench(writer)
    bench.hold((writer.layer, layer))
    planes, count = layer["planes"], 40 * layer["planes"]
    taken = drive(bench, writer, payloads, apart(planes))
    writes = bench.monitor(writer.o, count)
    busy = bench.probe(busy=writer.busy)["busy"]
    bench.run(extra=2)
    first = taken.cycles[0]
    assert taken.cycles == list(range(first, first + count, planes))
    assert writes.cycles == list(range(first + 2, first + 2 + count))
    busy_cycles = [cycle for cycle, bit in enumerate(busy) if bit]
    assert busy_cycles == list(range(first + 1, writes.cycles[-1] + 1))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"lanes": 12}, ValueError, "lanes must be a power of two, not 12"),
        ({"word": 4}, ValueError, "word must be at least 8, not 4"),
        ({"lanes": 32}, ValueError, "word must be at least the 32 lanes, not 16"),
        ({"plane_bits": 2.0}, TypeError, "plane_bits must be an integer, not 2.0"),
        ({"write": None}, TypeError, "write must be a WriteInfo, not None"),
        ({"layer": 3}, TypeError, "layer must be a LayerInfo, not 3"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(change: dict, error: type, text: str) -> None:
    write, layer = layouts(lanes=8, word=16, planes=3)
    sizes = {"lanes": 8, "word": 16, "plane_bits": PLANE_BITS, "write": write, "layer": layer}
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        Writer(**sizes | change)


@profiles
def test_the_writer_converts_to_verilog(monkeypatch: pytest.MonkeyPatch, profile: Profile) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    writer = build(lanes=8, word=32, planes=3, profile=profile)
    assert "o__payload" in verilog.convert(writer, ports=ports(writer))
