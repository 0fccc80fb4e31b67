# amaranth: UnusedElaboratable=no
"""HostWrites against `sim.models.host`: what reaches which memory, in the cycle of the write."""

from __future__ import annotations

import random

import pytest
from amaranth import Value
from core.harness import Bench

from lbq_hw.config import CoreConfig
from lbq_hw.core.host.writes import HostWrites, PlaneWrites, host_regions, host_writes
from lbq_hw.isa import regions
from lbq_hw.sim.models.host import HostModel, Write
from lbq_hw.sim.models.programs import SMALL

SHAPES = [SMALL, SMALL.with_(word=64, membrane_bits=40), SMALL.with_(lanes=4, units=1, word=8)]


def random_writes(source: random.Random, config: CoreConfig) -> list[Write | None]:
    """Whole entries of random regions, their slices in order, with idle cycles between."""
    slices, entries = regions.slices(config), regions.entries(config)
    found: list[Write | None] = []
    for _ in range(80):
        region = source.choice(host_regions(config))
        entry = source.choice((0, entries[region] - 1, source.randrange(entries[region])))
        for part in range(slices[region]):
            address = regions.address(config, region, entry, part)
            found += [None] * source.choice((0, 0, 2))
            found.append(Write(address=address, data=source.getrandbits(32)))
    return found


def split(value: int, enable: int, bits: int) -> dict[int, int]:
    """The signed values that are enabled."""
    found = {}
    for number in range(enable.bit_length()):
        if enable >> number & 1:
            raw = value >> number * bits & (1 << bits) - 1
            found[number] = raw - (raw >> bits - 1 << bits)
    return found


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("seed", range(2))
def test_a_slice_is_stored_in_its_cycle_and_a_value_of_a_parameter_with_its_last(
    shape: int, seed: int
) -> None:
    config = SHAPES[shape]
    writes = random_writes(random.Random(seed), config)
    block = host_writes(config)(config)
    bench = Bench(block)
    noise = random.Random(9)
    script = [
        {"addr": noise.getrandbits(32), "data": noise.getrandbits(32)}
        if write is None
        else {
            "written": 1 << (write.address >> regions.SHIFT),
            "addr": write.address,
            "data": write.data,
        }
        for write in writes
    ]
    bench.script({name: getattr(block, name) for name in ("written", "addr", "data")}, script)
    records = bench.monitor(block.records)
    planes = bench.monitor(block.plane_write)
    seen = bench.probe(
        **{
            f"{name}_{part}": Value.cast(getattr(getattr(block, name), part))
            for name in ("weights", "params")
            for part in ("addr", "data", "en")
        }
    )
    bench.run(extra=3)

    model = HostModel(config=config, planes=[], logits=[], layer=0)
    expected: dict[str, dict[int, dict]] = {name: {} for name in model.passed}
    for cycle, write in enumerate(writes):
        if write is None:
            continue
        before = {name: len(messages) for name, messages in model.passed.items()}
        model.take(write)
        for name, messages in model.passed.items():
            for message in messages[before[name] :]:
                expected[name][cycle] = message
    assert dict(zip(records.cycles, records.payloads, strict=True)) == expected["records"]
    assert dict(zip(planes.cycles, planes.payloads, strict=True)) == expected["plane_write"]
    for name, bits in (("weights", config.weight_bits), ("params", config.membrane_bits)):
        found = {
            cycle: {
                "addr": seen[f"{name}_addr"][cycle],
                "data": split(seen[f"{name}_data"][cycle], enable, bits),
            }
            for cycle, enable in enumerate(seen[f"{name}_en"])
            if enable
        }
        assert found == expected[name]
        assert found


def test_with_external_memory_the_host_writes_planes_alone() -> None:
    external = SMALL.with_external()
    assert [host_writes(config) for config in (SMALL, external)] == [HostWrites, PlaneWrites]
    assert "weights" not in PlaneWrites(external).signature.members
