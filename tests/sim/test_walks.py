"""Programs that the compiler never makes: what records mean holds for all their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from simulators import NARROW, UNCHECKED, WIDE, Shape, bench, drawn, needs_verilator, shared_core

from lbq_hw import golden, isa
from lbq_hw.compiler import Program, compile_network
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.config import CoreConfig
from lbq_hw.host import Device
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region
from lbq_hw.network import INPUT, Network
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.verilator import Verilated

pytestmark = needs_verilator

SEEDS = range(25)
AXES = ("row", "column")
LIMIT = 1_000_000
CONTROL = regions.REGISTERS["control"].address
REGIONS = {"layers": Region.LAYERS, "paths": Region.PATHS}
Record = dict[str, int]
Levels = NDArray[np.uint8]
both = pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A core with a network's program and an image; `levels` are golden's."""

    core: Verilated
    network: Network
    program: Program
    device: Device
    image: NDArray[np.uint8]
    levels: Mapping[str, Levels]

    def write(self, table: str, number: int, values: Mapping[str, int]) -> None:
        config, record = self.program.config, isa.TABLES[table]
        word = record.encode(config, dict(values))
        parts = [word >> 32 * part & 0xFFFFFFFF for part in range(record.slices(config))]
        self.core.write(regions.address(config, REGIONS[table], number), parts)

    def run(self, index: int, **changes: int) -> None:
        """Run a layer alone, with changes to its record."""
        layers = self.program.table("layers")
        self.write("layers", 0, layers[index] | {"last": 1} | changes)
        for command in (2, 1):
            self.core.write(CONTROL, [command])
        assert self.core.wait(LIMIT)
        self.device.check()
        self.write("layers", 0, layers[0])

    def bits(self) -> NDArray[np.uint8]:
        """All plane words, one row of bits each."""
        config = self.program.config
        parts = regions.slices(config)[Region.PLANES]
        assert parts & (parts - 1) == 0
        words = self.core.read(
            regions.address(config, Region.PLANES, 0), parts * config.plane_words
        )
        octets = np.array(words, "<u4").view(np.uint8)
        return np.unpackbits(octets, bitorder="little").reshape(config.plane_words, -1)


def programs(shape: Shape) -> Iterator[Loaded]:
    """The networks of a core, one after the other on the same core."""
    config = shared_core(shape)
    with Verilated(bench(config), options=UNCHECKED) as core:
        for seed in SEEDS:
            network = drawn(seed, config.lanes)
            program = compile_network(network, config)
            images = random_images(network, 1, seed)
            levels = golden.run(network, images, keep="levels").emitted(0)
            device = Device(core, program)
            device.load()
            device.write_image(images[0])
            yield Loaded(
                core=core, network=network, program=program, device=device,
                image=images[0], levels=levels,
            )  # fmt: skip


def whole(layer: Record, axis: str) -> bool:
    """Whether max-pool windows have several positions on an axis, and none is cut at an edge."""
    last, first = layer[f"window_{axis}s_last"], layer[f"window_{axis}_init"]
    step, positions = layer[f"window_{axis}_step"], layer[f"{axis}s_last"]
    return last > 0 <= first and first + positions * step + last <= layer[f"conv_{axis}s_last"]


def backward(program: Program) -> Iterator[tuple[int, Record, set[str]]]:
    """The paths whose windows can be walked from their last position to their first, so changed.

    The maximum over a window is the same in every order.
    """
    paths = program.table("paths")
    for layer in program.table("layers"):
        axes = [axis for axis in AXES if whole(layer, axis)]
        for number in range(layer["path_first"], layer["path_last"] + 1) if axes else ():
            path = dict(paths[number])
            for axis in axes:
                step = path[f"{axis}_window"]
                path[f"{axis}_init"] += layer[f"window_{axis}s_last"] * step
                path[f"{axis}_window"] = -step
            yield number, path, {axis for axis in axes if paths[number][f"{axis}_window"]}


@both
def test_windows_can_be_walked_backward(shape: Shape) -> None:
    seen = set[str]()
    for one in programs(shape):
        if not (changed := [*backward(one.program)]):
            continue
        for number, path, axes in changed:
            one.write("paths", number, path)
            seen |= axes
        for index, info in enumerate(one.program.info[:-1]):
            one.run(index)
            assert np.array_equal(one.device.read_levels(info.name), one.levels[info.name])
        wanted = golden.run(one.network, one.image[None]).logits[0]
        assert np.array_equal(one.device.run(one.image), wanted)
    assert seen == {*AXES}


def gap(one: Loaded, index: int) -> tuple[int, int]:
    """The longest range of plane words that a layer does not read."""
    sources = (one.program.tensors[path.source] for path in one.network.layers[index].paths)
    taken = sorted((tensor.base, tensor.end) for tensor in sources)
    ends = [0, *(end for _, end in taken)]
    begins = [*(base for base, _ in taken), one.program.config.plane_words]
    return max(zip(ends, begins, strict=True), key=lambda ends: ends[1] - ends[0])


def apart(config: CoreConfig, layer: Record, tensor: Tensor, room: int, axis: str) -> Record | None:
    """Fields that place a layer's levels in `room` words, as far apart on an axis as possible; None
    if there is no room.
    """
    slots = isa.LAYER.slots(config)
    rows, columns = layer["rows_last"], layer["columns_last"]
    planes, frames = layer["planes_last"] + 1, layer["time_last"] + 1
    chunk = 1 << layer["out_chunk"]

    def placed(factor: int) -> Record:
        of = {name: factor if name == axis else 1 for name in ("pitch", "row", "plane")}
        pitch = layer["out_pitch"] + chunk * (of["pitch"] - 1)
        bits = columns * pitch + layer["out_pitch"]
        row = -(-bits // tensor.word) + of["row"] - 1
        plane = (rows + 1) * row + of["plane"] - 1
        found = {"out_pitch": pitch, "out_row": row, "out_plane": plane}
        return found | {"out_frame": planes * plane}

    def fits(factor: int) -> bool:
        found = placed(factor)
        legal = all(found[name] <= slots[name].field.largest(config) for name in found)
        return legal and found["out_frame"] * frames <= room

    if not fits(1):
        return None
    return placed(max(factor for factor in range(1, room + 1) if fits(factor)))


def found_at(bits: NDArray[np.uint8], tensor: Tensor, layer: Record) -> Levels:
    """The levels of a tensor that was written as a record says."""
    channels, height, width = tensor.shape
    t, c, y, x = np.ogrid[: layer["time_last"] + 1, :channels, :height, :width]
    word, bit = np.divmod(x * layer["out_pitch"] + c, tensor.word)
    word = word + layer["out_base"] + t * layer["out_frame"] + y * layer["out_row"]
    planes = range(layer["planes_last"] + 1)
    return sum(bits[word + plane * layer["out_plane"], bit] << plane for plane in planes)


@both
def test_levels_can_be_written_anywhere(shape: Shape) -> None:
    """Columns, rows and planes are as far apart, or begin as late, as the memory allows."""
    seen = set[str]()
    for one in programs(shape):
        for index, info in enumerate(one.program.info[:-1]):
            layer, tensor = one.program.table("layers")[index], one.program.tensors[info.name]
            begin, end = gap(one, index)
            for axis in ("pitch", "row", "plane", "base"):
                placed = apart(one.program.config, layer, tensor, end - begin, axis)
                if placed is None:
                    continue
                words = placed["out_frame"] * (layer["time_last"] + 1)
                changes = placed | {"out_base": end - words if axis == "base" else begin}
                one.run(index, **changes)
                found = found_at(one.bits(), tensor, layer | changes)
                assert np.array_equal(found, one.levels[info.name]), f"{info.name}, {changes}"
                seen.add(axis)
            one.device.write_image(one.image)  # which a layer may have overwritten
            for again in range(index + 1):
                one.run(again)
            assert np.array_equal(one.device.read_levels(info.name), one.levels[info.name])
    assert seen == {"pitch", "row", "plane", "base"}


@both
def test_a_path_reads_only_what_is_within_its_bounds(shape: Shape) -> None:
    """As from an image that is black outside."""
    seen = set[str]()
    for one in programs(shape):
        tensor = one.program.tensors[INPUT]
        if one.network.input.border or tensor.shape != one.network.input.shape:
            continue  # a border is not black; or the compiler has moved pixels to channels
        layer, name = one.program.table("layers")[0], one.program.info[0].name
        paths = range(layer["path_first"], layer["path_last"] + 1)
        row, column = (side // 2 for side in tensor.shape[1:])
        for bound, value, kept in (
            ("row_low", row * tensor.row_words, np.s_[..., row:, :]),
            ("row_high", row * tensor.row_words - 1, np.s_[..., :row, :]),
            ("column_low", column * tensor.pitch, np.s_[..., column:]),
            ("column_high", column * tensor.pitch - 1, np.s_[..., :column]),
        ):
            black = np.zeros_like(one.image)
            black[kept] = one.image[kept]
            for path in paths:
                one.write("paths", path, one.program.table("paths")[path] | {bound: value})
            one.run(0)
            wanted = golden.run(one.network, black[None], keep="levels").emitted(0)[name]
            assert np.array_equal(one.device.read_levels(name), wanted), bound
            for path in paths:
                one.write("paths", path, one.program.table("paths")[path])
            one.device.write_image(one.image)
            seen.add(bound)
    assert seen == {"row_low", "row_high", "column_low", "column_high"}


def away(program: Program, layer: Record, path: Record) -> Iterator[Record]:
    """A path's record with its field of view moved out of the plane, in all directions."""
    runs = program.table("runs")[path["run_first"] : path["run_last"] + 1]
    for axis in AXES:
        slot = isa.PATH.slots(program.config)[f"{axis}_init"]
        least, most = slot.field.least(program.config), slot.field.largest(program.config)
        steps = layer[f"{axis}s_last"] * path[f"{axis}_step"]
        steps += layer[f"window_{axis}s_last"] * path[f"{axis}_window"]
        ends = (run[axis] + (run["length_last"] if axis == "column" else 0) for run in runs)
        reach = steps + max(ends)
        for distance in (sign << bit for bit in range(slot.width) for sign in (1, -1)):
            begin = path[f"{axis}_init"] + distance
            outside = begin > path[f"{axis}_high"] or begin + reach < 0
            if outside and least <= begin and begin + reach <= most:
                yield path | {f"{axis}_init": begin}


@both
def test_a_path_that_is_moved_out_of_its_plane_adds_nothing(shape: Shape) -> None:
    """As with weights that are 0."""
    moves = 0
    for one in programs(shape):
        layer, name = one.program.table("layers")[0], one.program.info[0].name
        first = one.network.layers[0]
        for index, path in enumerate(first.paths):
            none = replace(path, weight=np.zeros_like(path.weight))
            kept = (*first.paths[:index], none, *first.paths[index + 1 :])
            network = replace(
                one.network, layers=(replace(first, paths=kept), *one.network.layers[1:])
            )
            wanted = golden.run(network, one.image[None], keep="levels").emitted(0)[name]
            number = layer["path_first"] + index
            record = one.program.table("paths")[number]
            for moved in away(one.program, layer, record):
                one.device.write_image(one.image)
                one.write("paths", number, moved)
                one.run(0)
                assert np.array_equal(one.device.read_levels(name), wanted), moved
                moves += 1
            one.write("paths", number, record)
    assert moves > 100
