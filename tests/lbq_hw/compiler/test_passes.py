"""Tapes that the compiler makes: order, places, what waits for what, and what is refused."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from tapes import compiled, drawn, execute_and_compare, residual_network

from lbq_hw import file, zoo
from lbq_hw.compiler import (
    CompileError,
    Program,
    compile_network,
    listing,
    program_of_tape,
    smallest_for,
)
from lbq_hw.compiler.passes.blocks import block_rows
from lbq_hw.config import CoreConfig, narrow_mask
from lbq_hw.cycles import most_cycles
from lbq_hw.isa import regions, tape
from lbq_hw.isa.contents import Contents, LayerRecords
from lbq_hw.isa.regions import Region
from lbq_hw.sim.drawn.cores import external_core, random_core
from lbq_hw.sim.drawn.networks import random_images, random_network, with_narrow_layers

Read = dict[tuple[Region, int], int]


def entries_read(records: LayerRecords) -> set[tuple[Region, int]]:
    """Entries of tables and weight rows that a pass reads."""
    layer = records.layer
    found = {(Region.PATHS, i) for i in range(layer["path_first"], layer["path_last"] + 1)}
    found |= {
        (Region.SEGMENTS, i) for i in range(layer["segment_first"], layer["segment_last"] + 1)
    }
    for path in records.paths:
        found |= {(Region.RUNS, i) for i in range(path["run_first"], path["run_last"] + 1)}
    for segment in records.segments:
        path = records.paths[segment["path"]]
        if path["identity"]:
            found.add((Region.WEIGHTS, segment["weight"]))
            continue
        for run in records.runs[segment["path"]]:
            first = segment["weight"] + run["weight"]
            found |= {(Region.WEIGHTS, first + i) for i in range(run["length_last"] + 1)}
    return found


@pytest.mark.parametrize("seed", range(12))
def test_every_item_waits_for_the_last_pass_that_reads_what_it_overwrites(seed: int) -> None:
    network, config = drawn(seed)
    program = compiled(network, config)
    contents, last = Contents(config, np.random.default_rng(seed)), Read()
    number = waits = 0
    for item in tape.decode(config, program.tape):
        if item.address == tape.PASS:
            records = contents.records(number)
            read = entries_read(records)
            read.add((Region.LAYERS, number % config.layers))
            if not records.layer["partial_out"]:
                first = records.layer["param"] * config.lanes
                read |= {(Region.PARAMS, first + lane) for lane in range(config.lanes)}
            last |= dict.fromkeys(read, number)
            number += 1
            continue
        region, first, part = tape.entry(config, item)
        count = len(item.payload) // regions.slices(config)[region]
        assert part == 0
        assert count
        overwritten = [last.get((region, first + i), -1) for i in range(count)]
        assert item.after == max(overwritten) + 1
        waits += item.after > 0
        contents.write(item)
    assert number == len(program.passes)
    assert waits or number < 3


@pytest.mark.parametrize("seed", range(6))
def test_items_of_a_pass_come_in_their_order(seed: int) -> None:
    network, config = drawn(seed)
    program = compiled(network, config)
    kinds: list[int] = []
    for item in tape.decode(config, program.tape):
        if item.address != tape.PASS:
            kinds.append(item.address >> regions.SHIFT)
            continue
        assert kinds[0] == Region.LAYERS
        order = [*regions.TABLES, Region.PARAMS, Region.WEIGHTS]
        assert kinds == sorted(kinds, key=lambda kind: order.index(Region(kind)))
        assert all(kinds.count(kind) <= 1 for kind in order[:-1])
        kinds = []
    assert not kinds
    assert len(program.tape) % 1024 == 0


def test_cores_without_external_memory_get_the_same_programs_as_ever() -> None:
    digest = hashlib.sha256()
    for seed in range(40):
        network = random_network(seed, channels=(None, 12, 20)[seed % 3], floors=False)
        program = compile_network(network, random_core(network, seed))
        assert [one.layer for one in program.passes] == list(range(len(program.info)))
        image = program.image()
        tables = [image[region] for region in (*regions.TABLES, Region.PARAMS)]
        weights = program.contents.weights()[: program.usage["weight_rows"]]
        bases = {name: tensor.base for name, tensor in program.tensors.items()}
        digest.update(json.dumps([*tables, weights.tolist(), bases]).encode())
    expected = "41c54fb26e2e5c73145f4f545256589e0e677cd80e48c690f86f3e272413b77c"
    assert digest.hexdigest() == expected


@pytest.mark.parametrize("seed", range(8))
def test_layers_of_fewer_weight_bits_have_narrower_rows_and_compute_the_same(seed: int) -> None:
    network = with_narrow_layers(drawn(seed)[0], seed)
    config = external_core(network, seed)
    assert config.narrow_bits == network.narrow_bits
    programs = [compiled(network, core) for core in (config, config.with_(narrow=0))]
    for program in programs:
        execute_and_compare(network, program, seed)
    sizes = [
        sum(len(item.payload) for item in tape.decode(program.config, program.tape))
        for program in programs
    ]
    assert sizes[0] <= sizes[1]
    bits = {network.layer_bits(layer) for layer in network.layers}
    written = {
        tape.row_bits(config)[item.address >> regions.SHIFT]
        for item in tape.decode(config, programs[0].tape)
        if item.address >> regions.SHIFT in tape.row_bits(config)
    }
    assert bits <= written <= bits | {network.weight_bits}  # those of identities are never narrow


def test_a_layer_takes_the_fewest_bits_that_the_core_has_for_it() -> None:
    network = residual_network()
    last = network.layers[-1]
    [path] = last.paths
    narrow = replace(last, paths=(replace(path, weight=path.weight.clip(-1, 1)),), weight_bits=2)
    network = replace(network, layers=(*network.layers[:-1], narrow))
    config = smallest_for(network, lanes=16, word=16, external=16)
    assert config.narrow_bits == (2,)

    def payload(core: CoreConfig) -> int:
        made = compiled(network, core)
        return sum(len(item.payload) for item in tape.decode(core, made.tape))

    rows = last.paths[0].weight.shape[1]  # of 16 weights: 2 slices of 4 bits, or of 3, or 1 of 2
    widths = ((), (3,), (2,), (3, 2))
    sizes = [payload(config.with_(narrow=narrow_mask(some))) for some in widths]
    assert sizes == [sizes[0], sizes[0], sizes[0] - rows, sizes[0] - rows]
    wide = config.with_(narrow=narrow_mask((3,)))
    numbers = {
        item.address >> regions.SHIFT for item in tape.decode(wide, compiled(network, wide).tape)
    }
    assert tape.NARROW[0] in numbers  # 2 bits in rows of 3


def test_bands_and_tiles_cover_every_layer_once() -> None:
    program = compiled(*drawn(8))
    for number, info in enumerate(program.info):
        passes = [one for one in program.passes if one.layer == number]
        tiles = -(-info.shape[0] // program.config.lanes)
        assert {one.tile for one in passes} == set(range(tiles))
        for tile in range(tiles):
            bands = dict.fromkeys((one.first, one.end) for one in passes if one.tile == tile)
            rows = [row for first, end in bands for row in range(first, end)]
            assert rows == list(range(info.output_shape[1]))


def test_parameters_of_a_tile_are_brought_once_if_they_stay() -> None:
    network = residual_network()
    config = external_core(
        network, 1, lanes=8, weight_rows=32, partial_words=80, partial_bits=20, channels=64
    )
    program = compiled(network, config)
    assert max(layer.choice.bands for layer in program.budget) > 1
    kinds = [item.address >> regions.SHIFT for item in tape.decode(config, program.tape)]
    assert kinds.count(Region.PARAMS) == sum(-(-info.shape[0] // 8) for info in program.info)


@pytest.mark.parametrize(
    ("rows", "size"), [(1, 1), (15, 1), (16, 2), (40, 4), (511, 32), (512, 64), (4096, 64)]
)
def test_a_weight_memory_holds_eight_blocks_where_it_can(rows: int, size: int) -> None:
    assert block_rows(rows) == size


def refused(program: Program, **changes: int) -> CompileError:
    network = residual_network()
    with pytest.raises(CompileError) as caught:
        compile_network(network, program.config.with_(**changes))
    return caught.value


def test_what_is_short_is_named_with_what_would_do() -> None:
    network = residual_network()
    config = external_core(network, 1, lanes=8, units=2, weight_rows=32)
    program = compile_network(network, config)
    error = refused(program, partial_words=16, partial_bits=9)
    weight = network.layers[1].paths[0].weight.astype(np.int64)
    low, high = (
        5 * int(part.sum(axis=(1, 2, 3)).min())
        for part in (np.minimum(weight, 0), np.minimum(-weight, 0))
    )
    words, bits = 4 * 2 * 5, 1 + max(-low - 1, -high).bit_length()
    about_a = [text for text in error.violations if text.startswith("layer 'a'")]
    assert about_a == [
        f"layer 'a': an output row of partial sums needs {words} words, the core has 16 (24 "
        f"short); partial_words = {words} would do",
        f"layer 'a': a partial sum needs {bits} bits, the core has 9 ({bits - 9} short); "
        f"partial_bits = {bits} would do",
    ]
    assert error.would_do is not None
    compile_network(network, error.would_do)
    few = refused(program, weight_rows=2)
    assert "layer 'b': the weight memory needs 5 rows, the core has 2 (3 short)" in str(few)
    short = refused(program, plane_words=config.summary)
    assert re.search(r"tensor '\w+': the activation memory needs \d+ words", str(short))


@pytest.mark.parametrize("seed", range(20))
def test_a_core_that_a_refusal_proposes_would_do(seed: int) -> None:
    network, config = drawn(seed)
    draw = np.random.default_rng(seed)
    units = {"plane_words": config.summary, "partial_words": config.groups, "logits": config.lanes}
    names = (*units, "weight_rows", "partial_bits", "runs", "segments", "paths", "layer_paths")
    sizes = {}
    for name in names:
        most = getattr(config, name) // units.get(name, 1)
        if most and draw.random() < 0.5:
            sizes[name] = int(draw.integers(1, most + 1)) * units.get(name, 1)
    less = config.with_(**sizes)
    try:
        program = compile_network(network, less)
    except CompileError as error:
        program = compile_network(network, error.would_do or less)
    assert program.tape


def test_a_run_table_that_is_too_small_is_named() -> None:
    network = residual_network()
    config = external_core(network, 1, lanes=8, weight_rows=32)
    error = refused(compile_network(network, config), runs=1)
    assert error.violations == tuple(
        f"layer {name!r}: the run table needs 2 entries, the core has 1 (1 short); "
        f"runs = 2 would do"
        for name in ("b", "d", "logits")
    )


def test_the_listing_has_the_budget_and_the_passes() -> None:
    program = compiled(*drawn(8))
    text = listing.text(program)
    assert f"tape: {len(program.tape)} bytes, {len(program.passes)} passes" in text
    for layer in program.budget:
        assert re.search(rf"^  {re.escape(layer.name)} .* {layer.passes} ", text, re.MULTILINE)
    facts = listing.summary(program)
    assert facts["tape_bytes"] == len(program.tape)
    assert [layer["name"] for layer in facts["budget"]] == [one.name for one in program.info]
    assert len(facts["passes"]) == len(program.passes)


def test_a_network_compiles_to_the_same_tape_twice() -> None:
    network, config = drawn(7)
    assert compiled(network, config).tape == compiled(network, replace(config)).tape


def test_resnet20_of_the_zoo_fits_the_core_of_the_document() -> None:
    network = file.load(zoo.find("cifar10-resnet20"))
    config = smallest_for(
        network,
        lanes=128,
        word=128,
        external=16,
        weight_rows=512,
        partial_words=2048,
        partial_bits=21,
        plane_words=12288,
        channels=512,
        layers=8,
        paths=16,
        segments=64,
        runs=128,
    )
    program = compile_network(network, config)
    assert 800 < len(program.passes) < 950
    rows = sum(layer.rows for layer in program.budget)
    assert 128 * rows < len(program.tape) < 20_000_000
    assert program.usage["plane_words"] == 12288
    assert program.budget[-1].choice.part == 0  # the readout is not cut: its sums need 23 bits


def test_a_program_of_a_tape_that_was_made_before_is_the_same_for_the_host() -> None:
    network, config = drawn(3)
    made = compile_network(network, config)
    found = program_of_tape(network, config, made.tape)
    for name in ("name", "config", "timesteps", "input", "tensors", "info", "tape"):
        assert getattr(found, name) == getattr(made, name)
    assert (found.passes, found.budget) == ((), ())
    [raw] = random_images(network, 1)
    assert np.array_equal(found.load_image(raw), made.load_image(raw))
    assert found.logit_words == made.logit_words
    with pytest.raises(CompileError):
        program_of_tape(network, config.with_(plane_words=1), made.tape)


def test_the_most_cycles_of_a_tape_do_not_depend_on_what_its_passes_are() -> None:
    network, config = drawn(3)
    made = compile_network(network, config)
    known = most_cycles(made)
    unknown = most_cycles(program_of_tape(network, config, made.tape))
    assert len(known) == len(unknown) == len(made.info)
    assert abs(sum(known) - sum(unknown)) < len(made.info)  # each is rounded up
