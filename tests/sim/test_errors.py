"""What the core refuses: it says so in its registers, becomes idle and runs the next program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from simulators import (
    NARROW,
    UNCHECKED,
    WIDE,
    absent,
    bench,
    drawn,
    needs_verilator,
    shared_core,
    spread_core,
)

from lbq_hw import golden, isa
from lbq_hw.compiler import Program, compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.host import Device, DeviceError
from lbq_hw.isa import Error, regions
from lbq_hw.isa.regions import COUNTERS, Counters, Region
from lbq_hw.network import INPUT
from lbq_hw.numeric import Integers
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.verilator import Verilated

pytestmark = needs_verilator

SEEDS = {"compact": 19, "standard": 1, "spread": 1}
"""Of networks with three layers, several tiles and several timesteps."""
LIMIT = 1_000_000
CONTROL = regions.REGISTERS["control"].address
STATUS = regions.REGISTERS["status"].address
START, CLEAR = 1, 2
BUSY, DONE, FAILED = 1, 2, 4
REGIONS = {
    "layers": Region.LAYERS,
    "paths": Region.PATHS,
    "segments": Region.SEGMENTS,
    "runs": Region.RUNS,
}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A core with a good program and an image in it."""

    core: Verilated
    program: Program
    device: Device
    image: NDArray[np.uint8]
    logits: Integers

    def change(self, table: str, entry: int, like: int | None = None, **fields: int) -> None:
        """Overwrite fields of a record, or of a copy of the record `like`, legal or not."""
        config, record = self.program.config, isa.TABLES[table]
        values = self.program.table(table)[entry if like is None else like] | fields
        word = 0
        for name, slot in record.slots(config).items():
            assert values[name] >> slot.width in (0, -1), f"{name} cannot hold {values[name]}"
            word |= (values[name] & ((1 << slot.width) - 1)) << slot.offset
        self.write_record(table, entry, word)

    def write_record(self, table: str, entry: int, word: int) -> None:
        config = self.program.config
        parts = [word >> (32 * part) for part in range(isa.TABLES[table].slices(config))]
        self.core.write(
            regions.address(config, REGIONS[table], entry), [part & 0xFFFFFFFF for part in parts]
        )

    def start(self) -> None:
        self.core.write(CONTROL, [CLEAR])
        self.core.write(CONTROL, [START])

    def registers(self) -> tuple[int, Error, int]:
        """Status, error and its place."""
        status, error, at = self.core.read(STATUS, 3)
        return status, Error(error), at

    def assert_stops_with(self, error: Error, at: int) -> None:
        self.start()
        assert self.core.wait(LIMIT)
        assert self.registers() == (DONE | FAILED, error, at)
        self.assert_good()

    def assert_good(self) -> None:
        """The good program, loaded again, runs as if nothing had been."""
        self.device.load()
        assert np.array_equal(self.device.run(self.image), self.logits)
        assert self.registers() == (DONE, Error.NONE, 0)


CORES: Mapping[str, Callable[[], CoreConfig]] = {
    "compact": lambda: shared_core(NARROW),
    "standard": lambda: shared_core(WIDE),
    "spread": lambda: spread_core(WIDE),
}


@contextmanager
def loaded(seed: int, core: str = "standard", options: Sequence[str] = ()) -> Iterator[Bench]:
    config = CORES[core]()
    network = drawn(seed, config.lanes)
    program = compile_network(network, config)
    image = random_images(network, 1, seed)
    with Verilated(bench(config), options=options) as core:
        device = Device(core, program)
        device.load()
        device.write_image(image[0])
        logits = golden.run(network, image).logits[0]
        yield Bench(core=core, program=program, device=device, image=image[0], logits=logits)


@pytest.fixture(params=CORES)
def good(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with loaded(SEEDS[request.param], request.param) as found:
        yield found


def find(records: list[dict[str, int]], **wanted: int) -> int:
    """Index of the last record with these values."""
    return max(
        index
        for index, record in enumerate(records)
        if all(record[name] == value for name, value in wanted.items())
    )


def layer_of_segment(program: Program, segment: int) -> int:
    return next(
        number
        for number, layer in enumerate(program.table("layers"))
        if layer["segment_first"] <= segment <= layer["segment_last"]
    )


def test_an_illegal_layer(good: Bench) -> None:
    for entry in range(len(good.program.table("layers"))):
        good.change("layers", entry, reserved=1)
        good.assert_stops_with(Error.LAYER, entry)


def test_a_layer_with_more_paths_than_the_core_has(good: Bench) -> None:
    most = good.program.config.layer_paths
    good.change("layers", 0, path_first=0, path_last=most)
    good.assert_stops_with(Error.LAYER, 0)


def test_a_last_layer_that_does_not_end_the_program(good: Bench) -> None:
    config = good.program.config
    for entry in range(config.layers):
        good.write_record("layers", entry, good.program.image()[Region.LAYERS][0])
    good.assert_stops_with(Error.LAYER, config.layers - 1)


def test_an_illegal_path(good: Bench) -> None:
    for entry in range(len(good.program.table("paths"))):
        good.change("paths", entry, run_first=1, run_last=0)
        good.assert_stops_with(Error.PATH, entry)


def test_a_segment_of_a_path_that_its_layer_has_not(good: Bench) -> None:
    for entry in range(len(good.program.table("segments"))):
        layer = good.program.table("layers")[layer_of_segment(good.program, entry)]
        good.change("segments", entry, path=layer["path_last"] - layer["path_first"] + 1)
        good.assert_stops_with(Error.SEGMENT, entry)


def test_a_segment_whose_exponent_is_above_the_one_before_it(good: Bench) -> None:
    segments = good.program.table("segments")
    for layer in good.program.table("layers"):
        for entry in range(layer["segment_first"] + 1, layer["segment_last"] + 1):
            good.change("segments", entry, exponent=segments[entry - 1]["exponent"] + 1)
            good.assert_stops_with(Error.SEGMENT, entry)


def test_an_illegal_run(good: Bench) -> None:
    for entry in range(len(good.program.table("runs"))):
        good.change("runs", entry, weight=good.program.config.weight_rows)
        good.assert_stops_with(Error.RUN, entry)


def test_an_illegal_run_at_the_end_of_its_table(good: Bench) -> None:
    last = good.program.config.runs - 1
    good.change("runs", last, like=0, weight=good.program.config.weight_rows)
    good.change("paths", 0, run_first=last, run_last=last)
    good.assert_stops_with(Error.RUN, last)


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ("layers", Error.LAYER),
        ("paths", Error.PATH),
        ("segments", Error.SEGMENT),
        ("runs", Error.RUN),
    ],
)
def test_fields_may_have_their_largest_value_and_no_larger_one(
    good: Bench, table: str, error: Error
) -> None:
    """Layers, and paths of segments, have more rules, so that the largest may be refused there."""
    config, record = good.program.config, isa.TABLES[table]
    values = good.program.table(table)[0]
    for name, slot in record.slots(config).items():
        largest = slot.field.largest(config)
        if slot.field.signed or largest >= (1 << slot.width) - 1:
            continue
        good.change(table, 0, **{name: largest + 1})
        good.assert_stops_with(error, 0)
        if table == "layers" or name == "path":
            continue
        if not record.violations(config, values | {name: largest}):
            good.change(table, 0, **{name: largest})
            good.start()
            assert good.core.wait(LIMIT)
            assert good.registers()[1:] != (error, 0), name
            good.assert_good()


def test_nothing_follows_an_illegal_run(good: Bench) -> None:
    """The run after it would lead beyond the plane memory."""
    config, entry = good.program.config, good.program.table("segments")[0]["path"]
    path = good.program.table("paths")[entry]
    good.change("paths", entry, run_last=path["run_first"] + 1)
    good.change("segments", 0, base=config.plane_words - 1)
    good.change("runs", path["run_first"], weight=config.weight_rows)
    good.change("runs", path["run_first"] + 1, row=1, column=0, length_last=0, weight=0)
    good.assert_stops_with(Error.RUN, path["run_first"])


def test_nothing_follows_an_illegal_segment(good: Bench) -> None:
    """The segment after it would lead beyond the plane memory."""
    config = good.program.config
    layer = good.program.table("layers")[0]
    assert layer["segment_last"] > 0
    good.change("segments", 1, base=config.plane_words - 1)
    good.change("segments", 0, path=layer["path_last"] - layer["path_first"] + 1)
    good.assert_stops_with(Error.SEGMENT, 0)


@pytest.mark.parametrize("segment", [0, -1])
def test_a_weight_row_that_does_not_exist(good: Bench, segment: int) -> None:
    config = good.program.config
    entry = range(len(good.program.table("segments")))[segment]
    layer = layer_of_segment(good.program, entry)
    # All bits of all planes are set, so that every row of the window has an event.
    good.device.write_image(np.full_like(good.image, 255))
    for last in range(good.program.table("layers")[layer]["segment_first"], entry + 1):
        good.change("segments", last, weight=config.weight_rows - 1)
    good.assert_stops_with(Error.WEIGHT, layer)


@pytest.mark.parametrize("segment", [0, -1])
def test_a_plane_word_to_be_read_that_does_not_exist(good: Bench, segment: int) -> None:
    entry = range(len(good.program.table("segments")))[segment]
    good.change("segments", entry, base=good.program.config.plane_words - 1)
    good.assert_stops_with(Error.PLANE, layer_of_segment(good.program, entry))


@pytest.mark.parametrize("layer", [0, 1])
def test_a_plane_word_to_be_written_that_does_not_exist(good: Bench, layer: int) -> None:
    good.change("layers", layer, out_base=good.program.config.plane_words - 1)
    good.assert_stops_with(Error.PLANE, layer)


@pytest.mark.parametrize(
    ("words", "words_apart"), [(6, 4.7), (8, 4.7), (16, 4.7), (32, 4.7), (64, 15.99), (128, 15.99)]
)
def test_a_column_beyond_the_plane_memory(good: Bench, words: int, words_apart: float) -> None:
    """The first columns of a row are in the memory, and a later one begins beyond its `words`."""
    config = good.program.config
    pitch = int(words_apart * config.word)
    assert pitch < words * config.word < (config.side - 1) * pitch
    near = {"out_base": config.plane_words - words, "out_row": 0, "out_frame": 0, "out_plane": 0}
    loops = {"columns_last": config.side - 1, "window_column_step": 0, "rows_last": 0}
    good.change("layers", 0, **near, **loops, tiles_last=0, out_pitch=pitch)
    good.assert_stops_with(Error.PLANE, 0)


def test_a_row_beyond_the_plane_memory(good: Bench) -> None:
    """Rows are so far apart that the sum of a few of them has more bits than an address."""
    layers = good.program.table("layers")
    entry = next(number for number, layer in enumerate(layers) if layer["rows_last"])
    good.change("layers", entry, out_row=good.program.config.plane_words)
    good.assert_stops_with(Error.PLANE, entry)


def test_frames_beyond_the_plane_memory(good: Bench) -> None:
    layer = good.program.table("layers")[0]
    assert layer["time_last"]
    words = good.program.config.plane_words // (layer["planes_last"] + 1)
    good.change("layers", 0, out_plane=words, out_frame=words * (layer["planes_last"] + 1))
    good.assert_stops_with(Error.PLANE, 0)


def test_frames_that_do_not_follow_each_other(good: Bench) -> None:
    layer = good.program.table("layers")[0]
    assert layer["time_last"]
    for frame in (layer["out_frame"] + 1, layer["out_frame"] - 1, layer["out_frame"] ^ 512):
        good.change("layers", 0, out_frame=frame)
        good.assert_stops_with(Error.LAYER, 0)


@pytest.mark.parametrize(("core", "seed"), [("compact", 19), ("standard", 11), ("spread", 11)])
def test_planes_may_reach_to_the_end_of_their_memory(core: str, seed: int) -> None:
    """Three timesteps, of which the planes of the first layer are written at once."""
    with loaded(seed, core, UNCHECKED) as good:
        config, layers = good.program.config, good.program.table("layers")
        assert layers[0]["static"]
        assert layers[0]["time_last"] == 2
        for number, layer in enumerate(layers[:-1]):
            bits = layer["columns_last"] * layer["out_pitch"] + layer["tiles_last"] * config.lanes
            last = bits // config.word + sum(
                layer[loop] * layer[step]
                for loop, step in (
                    ("rows_last", "out_row"),
                    ("planes_last", "out_plane"),
                    ("time_last", "out_frame"),
                )
            )
            good.change("layers", number, out_base=config.plane_words - 1 - last)
            good.start()
            assert good.core.wait(LIMIT)
            assert good.registers() == (DONE, Error.NONE, 0)
            good.change("layers", number, out_base=config.plane_words - last)
            good.assert_stops_with(Error.PLANE, number)


def test_more_logits_than_their_memory_holds(good: Bench) -> None:
    config, last = good.program.config, len(good.program.table("layers")) - 1
    side, tiles = config.side, good.program.table("layers")[last]["tiles_last"] + 1
    assert side * side * tiles * config.lanes > config.logits
    stay = {"window_row_step": 0, "window_column_step": 0}
    good.change("layers", last, rows_last=side - 1, columns_last=side - 1, **stay)
    good.assert_stops_with(Error.LOGIT, last)


def test_as_many_logits_as_their_memory_holds(good: Bench) -> None:
    config, last = good.program.config, len(good.program.table("layers")) - 1
    assert config.logits // config.lanes == 35
    stay = {"window_row_step": 0, "window_column_step": 0, "tiles_last": 0}
    good.change("layers", last, rows_last=6, columns_last=4, **stay)
    good.start()
    assert good.core.wait(LIMIT)
    assert good.registers() == (DONE, Error.NONE, 0)
    good.change("layers", last, rows_last=5, columns_last=5, **stay)
    good.assert_stops_with(Error.LOGIT, last)


def test_a_parameter_tile_that_does_not_exist(good: Bench) -> None:
    layers, tiles = good.program.table("layers"), good.program.config.param_tiles
    entry = next(number for number, layer in enumerate(layers) if layer["tiles_last"])
    good.change("layers", entry, param=tiles - 1)
    good.assert_stops_with(Error.PARAM, entry)


def test_the_host_is_told(good: Bench) -> None:
    good.change("layers", 1, reserved=1)
    with pytest.raises(DeviceError, match=r"^the core stopped with error LAYER at 1$"):
        good.device.start()
    good.assert_good()


def test_a_start_while_busy_is_refused_and_changes_nothing(good: Bench) -> None:
    good.start()
    good.core.write(CONTROL, [START])
    assert good.registers() == (BUSY | FAILED, Error.BUSY, 0)
    assert good.core.wait(LIMIT)
    assert good.registers() == (DONE | FAILED, Error.BUSY, 0)
    assert np.array_equal(good.device.read_logits(), good.logits)
    good.assert_good()


def test_a_clear_while_busy_is_refused(good: Bench) -> None:
    good.start()
    good.core.write(CONTROL, [CLEAR])
    assert good.registers() == (BUSY | FAILED, Error.BUSY, 0)
    assert good.core.wait(LIMIT)
    assert np.array_equal(good.device.read_logits(), good.logits)
    good.assert_good()


@pytest.mark.parametrize(
    "region", regions.reached(CoreConfig())[1:], ids=lambda region: region.name
)
def test_a_write_while_busy_is_refused_and_changes_nothing(good: Bench, region: Region) -> None:
    config = good.program.config
    entry = good.program.tensors[INPUT].base if region == Region.PLANES else 0
    good.start()
    words = [0xFFFFFFFF] * regions.slices(config)[region]
    good.core.write(regions.address(config, region, entry), words)
    assert good.registers() == (BUSY | FAILED, Error.BUSY, 0)
    assert good.core.wait(LIMIT)
    assert np.array_equal(good.device.read_logits(), good.logits)
    assert np.array_equal(good.device.run(good.image), good.logits)  # without loading again


@pytest.mark.parametrize("region", [Region.PLANES, Region.LOGITS], ids=lambda region: region.name)
def test_a_read_while_busy_is_refused_and_answers_0(good: Bench, region: Region) -> None:
    good.start()
    assert good.core.read(regions.address(good.program.config, region, 0), 1) == [0]
    assert good.registers() == (BUSY | FAILED, Error.BUSY, 0)
    assert good.core.wait(LIMIT)
    assert np.array_equal(good.device.read_logits(), good.logits)
    good.assert_good()


def test_registers_can_be_read_while_busy(good: Bench) -> None:
    good.start()
    assert good.core.read(0, 2) == [regions.MAGIC, int(good.program.config.digest[:8], 16)]
    assert good.registers() == (BUSY, Error.NONE, 0)
    assert good.core.wait(LIMIT)
    assert good.registers() == (DONE, Error.NONE, 0)


def test_a_reset_in_the_middle_of_a_run_leaves_nothing_behind(good: Bench) -> None:
    good.assert_good()
    counters = good.device.counters()
    for part in range(20):
        good.device.write_image(good.image)  # which a layer may have overwritten
        good.start()
        assert not good.core.wait(1 + part * counters.cycles // 20)
        good.core.reset()
        assert good.registers() == (0, Error.NONE, 0)
        assert good.device.counters() == Counters(**dict.fromkeys(COUNTERS, 0))
        assert good.core.wait(0)
        assert np.array_equal(good.device.run(good.image), good.logits)  # memories are as before
        assert good.device.counters() == counters


@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_an_address_that_does_not_exist(good: Bench, write: bool) -> None:
    config = good.program.config
    addresses = absent(config)
    assert any("slice" in place for place in addresses)
    if write:
        registers = regions.REGISTERS.items()
        read_only = {f"write to {name}": register.address
                     for name, register in registers if name != "control"}  # fmt: skip
        addresses |= read_only | {"write to LOGITS": regions.address(config, Region.LOGITS, 0)}
    else:
        tables = (kind for kind in Region if Region.LAYERS <= kind <= Region.PARAMS)
        addresses |= {f"read of {kind.name}": regions.address(config, kind, 0) for kind in tables}
    for place, address in addresses.items():
        good.core.write(CONTROL, [CLEAR])
        if write:
            good.core.write(address, [0xFFFFFFFF])
        else:
            assert good.core.read(address, 1) == [0], place
        assert good.registers() == (FAILED, Error.ADDRESS, 0), place
        assert good.core.wait(0)
    assert np.array_equal(good.device.run(good.image), good.logits)  # without loading again


def test_the_first_error_stays_until_it_is_cleared(good: Bench) -> None:
    good.change("layers", 1, reserved=1)
    good.start()
    good.core.write(CONTROL, [START])
    assert good.core.wait(LIMIT)
    assert good.registers() == (DONE | FAILED, Error.BUSY, 0)
    good.core.write(CONTROL, [CLEAR])
    assert good.registers() == (0, Error.NONE, 0)
    good.assert_good()


def assert_never_hangs(good: Bench, seeds: range) -> None:
    """Flip a bit of any record, but of the loops' ends, which may make a run too long to wait."""
    config = good.program.config
    for seed in seeds:
        random = np.random.default_rng(seed)
        table = str(random.choice(list(isa.TABLES)))
        words = good.program.image()[REGIONS[table]]
        entry = int(random.integers(len(words)))
        slots = [
            slot
            for name, slot in isa.TABLES[table].slots(config).items()
            if slot.width
            and not (table == "layers" and name.endswith("_last") and name != "planes_last")
        ]
        slot = slots[random.integers(len(slots))]
        bit = slot.offset + int(random.integers(slot.width))
        good.write_record(table, entry, words[entry] ^ (1 << bit))
        good.device.write_image(good.image)
        good.start()
        where = f"seed {seed}: {table} {entry}, field {slot.field.name}"
        assert good.core.wait(20 * LIMIT), where
        status, error, _ = good.registers()
        assert status == (DONE | FAILED if error else DONE), where
        values = isa.TABLES[table].decode(config, words[entry] ^ (1 << bit))
        if isa.TABLES[table].violations(config, values):
            assert error.name in (table[:-1].upper(), "SEGMENT", "RUN"), where
        good.assert_good()


@pytest.mark.parametrize("core", CORES)
def test_no_flipped_bit_makes_it_hang(core: str) -> None:
    with loaded(SEEDS[core], core, UNCHECKED) as good:
        assert_never_hangs(good, range(60))


@pytest.mark.slow
@pytest.mark.parametrize("network", [1, 7, 9, 19, 21])
def test_none_of_many_flipped_bits_makes_it_hang(network: int) -> None:
    with loaded(network, options=UNCHECKED) as good:
        assert_never_hangs(good, range(1000 * network, 1000 * network + 1000))
