# amaranth: UnusedElaboratable=no
"""TapeWrites: records and values of parameters in the next cycle, weight rows whole."""

from __future__ import annotations

import random

import numpy as np
import pytest
from amaranth import Value
from core.external.tape_bench import CORE
from core.harness import Bench

from lbq_hw.compiler.weights import slices as packed
from lbq_hw.config import narrow_mask
from lbq_hw.core.external.tape_writes import MixedWrites, TapeWrites
from lbq_hw.core.walk.tables import Table
from lbq_hw.isa import PARAM, regions, tape
from lbq_hw.isa.regions import Region


@pytest.mark.parametrize("weight_bits", [2, 3, 8])
def test_rows_are_written_whole_and_all_else_by_the_slice(weight_bits: int) -> None:
    config = CORE.with_(weight_bits=weight_bits)
    source, script = random.Random(weight_bits), []
    records, rows, params = {}, {}, {}
    slices = regions.slices(config)
    for _ in range(60):
        region = source.choice([Region.PATHS, Region.WEIGHTS, Region.WEIGHTS, Region.PARAMS])
        entry = source.randrange(regions.entries(config)[region])
        values = [source.getrandbits(32) for _ in range(slices[region])]
        given = []
        for part, value in enumerate(values):
            script += [{"addr": source.getrandbits(32), "data": 5}] * source.choice([0, 0, 1])
            address = regions.address(config, region, entry, part)
            if region == Region.PATHS:
                below = address & (1 << regions.SHIFT) - 1
                records[len(script) + 1] = {"table": Table.PATHS, "address": below, "data": value}
            given.append(len(script))
            script.append({"written": 1 << region, "addr": address, "data": value})
        if region == Region.WEIGHTS:
            used = weight_bits * regions.weight_slice_lanes(config)
            row = sum((value & (1 << used) - 1) << used * i for i, value in enumerate(values))
            rows[given[-1] + 2] = (entry, row)
        elif region == Region.PARAMS:
            word = sum(value << 32 * i for i, value in enumerate(values))
            word &= (1 << PARAM.width(config)) - 1
            found = PARAM.decode(config, word)
            for number, name in enumerate(("bias", "theta", "reset")):
                cycle = given[PARAM.slots(config)[name].last_slice] + 1
                which = 3 * (entry % config.units) + number
                value = found[name] & (1 << config.membrane_bits) - 1
                params.setdefault(cycle, []).append((entry // config.units, which, value))
    block = TapeWrites(config)
    bench = Bench(block)
    bench.script({name: getattr(block, name) for name in ("written", "addr", "data")}, script)
    stored = bench.monitor(block.records)
    seen = bench.probe(
        row_en=block.weights.en, row_at=block.weights.addr, row=Value.cast(block.weights.data),
        en=block.params.en, at=block.params.addr, param=Value.cast(block.params.data),
    )  # fmt: skip
    bench.run(extra=2)
    assert dict(zip(stored.cycles, stored.payloads, strict=True)) == records
    found = {cycle: (seen["row_at"][cycle], seen["row"][cycle])
             for cycle, enable in enumerate(seen["row_en"]) if enable}  # fmt: skip
    assert found == rows
    assert [cycle for cycle, enable in enumerate(seen["en"]) if enable] == list(params)
    for cycle, values in params.items():
        assert seen["en"][cycle] == sum(1 << which for _, which, _ in values)
        for at, which, value in values:
            word = seen["param"][cycle] >> which * config.membrane_bits
            assert (seen["at"][cycle], word & (1 << config.membrane_bits) - 1) == (at, value)


@pytest.mark.parametrize(("weight_bits", "widths"), [(4, (3, 2)), (8, (6, 4, 2))])
def test_rows_of_fewer_bits_are_written_as_wide_as_the_memory(
    weight_bits: int, widths: tuple[int, ...]
) -> None:
    sizes = {"lanes": 16, "word": 16, "channels": 16, "logits": 16, "weight_bits": weight_bits}
    config = CORE.with_(**sizes, narrow=narrow_mask(widths))
    source, script, rows = random.Random(weight_bits), [], {}
    numbers = {bits: number for number, bits in tape.row_bits(config).items()}
    for _ in range(40):
        bits = source.choice((weight_bits, *widths))
        weights = [source.randrange(-(1 << bits - 1), 1 << bits - 1) for _ in range(config.lanes)]
        entry = source.randrange(config.weight_rows)
        for part, value in enumerate(packed(np.array([weights]), config, bits)[0].tolist()):
            script += [{"addr": source.getrandbits(32), "data": 5}] * source.choice([0, 0, 1])
            address = regions.address(config, Region.WEIGHTS, entry, part)
            address += numbers[bits] - Region.WEIGHTS << regions.SHIFT
            script.append({"written": 1 << Region.WEIGHTS, "addr": address, "data": value})
        mask = (1 << weight_bits) - 1
        row = sum((weight & mask) << weight_bits * i for i, weight in enumerate(weights))
        rows[len(script) + 1] = (entry, row)
    block = MixedWrites(config)
    bench = Bench(block)
    bench.script({name: getattr(block, name) for name in ("written", "addr", "data")}, script)
    seen = bench.probe(
        row_en=block.weights.en, row_at=block.weights.addr, row=Value.cast(block.weights.data)
    )
    bench.run(extra=2)
    found = {cycle: (seen["row_at"][cycle], seen["row"][cycle])
             for cycle, enable in enumerate(seen["row_en"]) if enable}  # fmt: skip
    assert found == rows
