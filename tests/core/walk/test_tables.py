# amaranth: UnusedElaboratable=no
"""SliceTable and RecordTable against lists of records: what is written is read a cycle later."""

from __future__ import annotations

import random

import pytest
from amaranth import Value
from core.harness import Bench

from lbq_hw.core.walk.tables import RecordTable, SliceTable, Table
from lbq_hw.isa.record import SLICE
from lbq_hw.sim.models.programs import SHAPES, SMALL, slices

MASK = (1 << SLICE) - 1


def records(source: random.Random, config, table: Table, count: int | None = None) -> list[int]:
    width = table.record.width(config)
    return [source.getrandbits(width) for _ in range(count or getattr(config, table.kind))]


def random_tables(source: random.Random, config) -> dict[str, list[int]]:
    return {table.kind: records(source, config, table) for table in Table}


def reads(bench: Bench, port, addresses: list[int], after: int) -> dict[str, list[int]]:
    """Read one address a cycle, from cycle `after` on."""
    script = [{}] * after + [{"en": 1, "addr": address} for address in addresses]
    bench.script({"en": port.en, "addr": port.addr}, script)
    return bench.probe(data=Value.cast(port.data))


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("table", [Table.SEGMENTS, Table.RUNS])
def test_whole_records_are_read_a_cycle_after_they_are_asked_for(shape: int, table: Table) -> None:
    config, source = SHAPES[shape], random.Random(shape)
    tables = random_tables(source, config)
    block = RecordTable(config, table)
    bench = Bench(block)
    writes = slices(config, tables)  # those of the other tables change nothing
    source.shuffle(writes)
    bench.drive(block.i_record, writes)
    entries = list(range(len(tables[table.kind])))
    source.shuffle(entries)
    seen = reads(bench, block.read, entries, len(writes))["data"]
    bench.run(extra=3)
    first = len(writes) + 1
    assert seen[first : first + len(entries)] == [tables[table.kind][i] for i in entries]
    # The last one stays.
    assert set(seen[first + len(entries) - 1 :]) == {tables[table.kind][entries[-1]]}


def test_records_after_configuration_are_those_given_then_zeros() -> None:
    source = random.Random(1)
    given = records(source, SMALL, Table.RUNS, 5)
    block = RecordTable(SMALL, Table.RUNS, given)
    bench = Bench(block)
    seen = reads(bench, block.read, list(range(SMALL.runs)), 0)["data"]
    bench.run(extra=1)
    assert seen[1 : SMALL.runs + 1] == given + [0] * (SMALL.runs - 5)


@pytest.mark.parametrize("table", [Table.LAYERS, Table.SEGMENTS])
def test_a_written_slice_is_read_from_the_next_cycle_on(table: Table) -> None:
    whole = table is Table.SEGMENTS
    block = RecordTable(SMALL, table) if whole else SliceTable(SMALL)
    bench = Bench(block)
    bench.drive(block.i_record, [{"table": table, "address": 0, "data": 0b101}])
    seen = reads(bench, block.read if whole else block.layers, [0], 1)["data"]
    bench.run(extra=1)
    assert seen[:3] == [0, 0, 0b101]


def addresses(config, table: Table) -> list[tuple[int, int]]:
    """Every slice of a table: its record, its place in that."""
    parts = table.record.slices(config)
    return [(i, part) for i in range(getattr(config, table.kind)) for part in range(parts)]


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("baked", [False, True])
def test_slices_are_read_a_cycle_after_they_are_asked_for(shape: int, baked: bool) -> None:
    config, source = SHAPES[shape], random.Random(shape)
    tables = random_tables(source, config)
    init = {"layers": tables["layers"], "paths": tables["paths"]} if baked else {}
    block = SliceTable(config, **init)
    bench = Bench(block)
    writes = [] if baked else slices(config, tables)
    bench.drive(block.i_record, writes)
    script: list[dict] = [{} for _ in writes]
    expected = []
    for name, table in (("layers", Table.LAYERS), ("paths", Table.PATHS)):
        for entry, part in addresses(config, table):
            address = entry << table.part_bits(config) | part
            script.append({f"{name}_en": 1, f"{name}_addr": address})
            expected.append(tables[name][entry] >> SLICE * part & MASK)
    signals = {}
    for name, port in (("layers", block.layers), ("paths", block.paths)):
        signals |= {f"{name}_en": port.en, f"{name}_addr": port.addr}
    bench.script(signals, script)
    seen = bench.probe(layers=block.layers.data, paths=block.paths.data)
    bench.run(extra=1)
    first = len(writes) + 1
    assert seen["layers"] == seen["paths"]
    assert seen["layers"][first : first + len(expected)] == expected


def test_the_layers_win_where_both_are_read() -> None:
    block = SliceTable(SMALL, layers=[7], paths=[9])
    bench = Bench(block)
    both = [{"layers": 1, "paths": 1}, {"paths": 1}, {}]
    bench.script({"layers": block.layers.en, "paths": block.paths.en}, both)
    seen = bench.probe(layers=block.layers.data, paths=block.paths.data)
    bench.run()
    assert seen["layers"] == seen["paths"]
    assert seen["layers"][1:3] == [7, 9]
