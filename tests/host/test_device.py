from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from host.memory_model import CoreMemory, MemoryTransport
from tapes import drawn, items_of, with_items

from lbq_hw import isa
from lbq_hw.compiler import Program, compile_network, smallest_for
from lbq_hw.config import CoreConfig
from lbq_hw.cycles import most_cycles
from lbq_hw.host import Counters, Device, DeviceError
from lbq_hw.host.memory import Captures
from lbq_hw.isa import Error, regions
from lbq_hw.isa.regions import Region
from lbq_hw.network import INPUT, Network
from lbq_hw.sim.drawn.networks import random_images, random_network

CONTROL = regions.REGISTERS["control"].address
RECORDS = {
    Region.LAYERS: isa.LAYER,
    Region.PATHS: isa.PATH,
    Region.SEGMENTS: isa.SEGMENT,
    Region.RUNS: isa.RUN,
    Region.PARAMS: isa.PARAM,
}


class Memory:
    """A core's addresses, and no core: what was written last, and every write of the control."""

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        self.words: dict[int, int] = {}
        self.order: list[int] = []
        self.controls: list[int] = []
        self.idle = True
        self.limit = 0
        self.set_registers(id=regions.MAGIC, digest=int(config.digest[:8], 16))

    def set_registers(self, **values: int) -> None:
        for name, value in values.items():
            self.words[regions.REGISTERS[name].address] = value

    def write(self, address: int, words: Sequence[int]) -> None:
        for offset, word in enumerate(words):
            assert 0 <= word < 1 << 32
            self.words[address + offset] = word
            self.order.append(address + offset)
            if address + offset == CONTROL:
                self.controls.append(word)

    def read(self, address: int, count: int) -> list[int]:
        return [self.words.get(address + offset, 0) for offset in range(count)]

    def wait(self, limit: int) -> bool:
        self.limit = limit
        return self.idle

    def entry(self, region: Region, number: int) -> int:
        """All slices of an entry as one number."""
        slices = regions.slices(self.config)[region]
        at = [regions.address(self.config, region, number, part) for part in range(slices)]
        return sum(self.words[address] << (32 * part) for part, address in enumerate(at))

    def put(self, region: Region, number: int, value: int) -> None:
        for part in range(regions.slices(self.config)[region]):
            at = regions.address(self.config, region, number, part)
            self.words[at] = value >> (32 * part) & 0xFFFFFFFF


def prepared(seed: int = 3, **fixed: int) -> tuple[Network, Program, Memory]:
    network = random_network(seed)
    program = compile_network(network, smallest_for(network, **fixed))
    return network, program, Memory(program.config)


@pytest.mark.parametrize("word", [16, 32, 64, 256])
def test_everything_is_loaded_where_the_core_looks_for_it(word: int) -> None:
    _, program, memory = prepared(lanes=16, word=word, membrane_bits=40)
    config = program.config
    Device(memory, program).load()
    image = program.image()
    for region, record in RECORDS.items():
        assert regions.slices(config)[region] == record.slices(config)
        found = [memory.entry(region, number) for number in range(len(image[region]))]
        assert found == image[region]
    lanes, bits = regions.weight_slice_lanes(config), config.weight_bits
    weights = program.contents.weights()[: program.usage["weight_rows"]]
    for (row, lane), weight in np.ndenumerate(weights):
        part = memory.words[regions.address(config, Region.WEIGHTS, row, lane // lanes)]
        assert part >> (lane % lanes * bits) & ((1 << bits) - 1) == weight % (1 << bits)
    expected = sum(len(words) * regions.slices(config)[region] for region, words in image.items())
    order = [address for address in memory.order if address >> regions.SHIFT]
    assert len(order) == len(set(order)) == expected


def test_a_tag_names_the_program() -> None:
    _, program, memory = prepared()
    [row, *_] = [one for one in items_of(program) if one.address >> regions.SHIFT == Region.WEIGHTS]
    other = replace(row, payload=tuple(word ^ 1 for word in row.payload))
    changed = with_items(program, [*items_of(program), other])
    assert (changed.contents.weights() != program.contents.weights()).any()
    tags = [Device(memory, which).tag for which in (program, replace(program), changed)]
    assert tags[0] == tags[1] != tags[2]
    assert 0 < tags[0] < 1 << 32


def test_a_program_that_the_core_refuses_is_told() -> None:
    _, program, memory = prepared()
    device = Device(memory, program)
    memory.set_registers(status=0b100, error=Error.ADDRESS, error_at=0)
    with pytest.raises(DeviceError, match=r"^the core stopped with error ADDRESS at 0$"):
        device.load()


def test_slices_of_an_entry_are_written_in_order() -> None:
    _, program, memory = prepared(lanes=16, membrane_bits=20)
    assert isa.PARAM.slices(program.config) == 3  # of 4 addresses
    Device(memory, program).load()
    params = [address for address in memory.order if address >> regions.SHIFT == Region.PARAMS]
    assert params == [
        regions.address(program.config, Region.PARAMS, entry, part)
        for entry in range(program.usage["channels"])
        for part in range(3)
    ]


@pytest.mark.parametrize("word", [16, 64])
def test_an_image_is_written_where_the_first_layer_reads_it(word: int) -> None:
    network, program, memory = prepared(lanes=16, word=word)
    raw = random_images(network, 1)[0]
    Device(memory, program).write_image(raw)
    base = program.tensors[INPUT].base
    for number, bits in enumerate(program.input_bits(raw)):
        wanted = sum(int(bit) << place for place, bit in enumerate(bits))
        assert memory.entry(Region.PLANES, base + number) == wanted
    assert len(memory.order) == len(program.input_bits(raw)) * -(-word // 32)


def test_a_start_clears_first() -> None:
    _, program, memory = prepared()
    Device(memory, program).start()
    assert memory.controls == [2, 1]


@pytest.mark.parametrize("bits", [24, 32, 33, 48])
def test_logits_are_signed(bits: int) -> None:
    _, program, memory = prepared(lanes=4, membrane_bits=bits)
    classes = program.info[-1].shape
    assert classes[1:] == (1, 1)
    values = np.random.default_rng(bits).integers(-(1 << bits - 1), 1 << bits - 1, classes[0])
    values[:2] = -(1 << bits - 1), (1 << bits - 1) - 1
    for number, value in enumerate(values.tolist()):
        memory.put(Region.LOGITS, number, value)
    found = Device(memory, program).read_logits()
    assert found.dtype == np.int64
    assert np.array_equal(found, values)


def test_a_run_gives_logits_and_a_prediction_their_largest() -> None:
    network, program, memory = prepared(lanes=4)
    device = Device(memory, program)
    classes = program.info[-1].shape[0]
    wanted = -np.arange(10, 10 + classes)
    for number, value in enumerate(wanted.tolist()):
        memory.put(Region.LOGITS, number, value)
    images = random_images(network, 2)
    assert np.array_equal(device.run(images[0]), wanted)
    assert device.predict(images).tolist() == [0, 0]
    assert memory.controls == [2, 1] * 3


@pytest.mark.parametrize("word", [16, 64])
def test_levels_are_read_from_the_plane_memory(word: int) -> None:
    _, program, memory = prepared(lanes=8, word=word)
    tensor = list(program.tensors.values())[1]
    random = np.random.default_rng(0)
    levels = random.integers(0, 1 << tensor.planes, (tensor.frames, *tensor.shape), dtype=np.uint8)
    for number, bits in enumerate(tensor.pack(levels)):
        value = sum(int(bit) << place for place, bit in enumerate(bits))
        memory.put(Region.PLANES, tensor.base + number, value)
    assert np.array_equal(Device(memory, program).read_levels(tensor.name), levels)


def test_one_layer_runs_as_the_first_and_last_and_the_table_is_mended() -> None:
    _, program, memory = prepared(lanes=8)
    config = program.config
    seen = []

    class Watching(Memory):
        def wait(self, limit: int) -> bool:
            if self.controls:
                seen.append(self.entry(Region.LAYERS, 0))
            return super().wait(limit)

    memory = Watching(config)
    device = Device(memory, program)
    device.load()
    layers = program.image()[Region.LAYERS]
    for index, word in enumerate(layers):
        device.run_layer(index)
        assert isa.LAYER.decode(config, seen[-1]) == isa.LAYER.decode(config, word) | {"last": 1}
        assert memory.entry(Region.LAYERS, 0) == layers[0]
    memory.set_registers(status=0b110, error=Error.PLANE)
    with pytest.raises(DeviceError):
        device.run_layer(1)
    assert memory.entry(Region.LAYERS, 0) == layers[0]


def test_counters() -> None:
    _, program, memory = prepared()
    names = list(regions.REGISTERS)[regions.REGISTERS["cycles"].address :]
    memory.set_registers(**{name: 10 + number for number, name in enumerate(names)})
    assert Device(memory, program).counters() == Counters(
        cycles=(11 << 32) + 10,
        events=12,
        null_events=13,
        scanner_stalls=14,
        neuron_stalls=15,
        words=16,
        empty_requests=17,
    )


@pytest.mark.parametrize("count", [1, 3])
def test_counters_that_a_core_lacks_are_none(count: int) -> None:
    _, program, memory = prepared(counters=count)
    names = list(regions.REGISTERS)[regions.REGISTERS["cycles"].address :]
    memory.set_registers(**{name: 10 + number for number, name in enumerate(names)})
    found = Device(memory, program).counters()
    known = {"cycles": (11 << 32) + 10, "events": 12, "null_events": 13}
    assert found == Counters(**dict(list(known.items())[:count]))
    assert found.empty_requests is None


@pytest.mark.parametrize(("register", "value"), [("id", 0xFFFFFFFF), ("digest", 0x12345678)])
def test_another_core_is_refused(register: str, value: int) -> None:
    _, program, memory = prepared()
    wanted = int(program.config.digest[:8], 16)
    memory.set_registers(**{register: value})
    found = {"id": regions.MAGIC, "digest": wanted} | {register: value}
    text = (
        f"the core must be LBQ1 with config {wanted:08x}, not {found['id']:08x} with "
        f"{found['digest']:08x}: load the bitstream of this program"
    )
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        Device(memory, program)


ADVICE = {
    Error.TAPE: "the tape in its memory is not this package's, or is read wrongly: upload it with "
    "--reload --recalibrate",
    Error.CRC: "the tape in its memory was altered, or the board has become warmer or colder since "
    "its memory was calibrated: run with --recalibrate, and if that does not help, test the memory "
    "with --memory-test",
    Error.ORDER: "its tape has a deadlock: build the package again",
    Error.MEMORY: "its external memory does not work: power the board off and on, and check that "
    "the package is for this board",
    Error.PARTIAL: "its tape is for a core with more partial sums: build the package again",
}


@pytest.mark.parametrize("error", list(Error)[1:], ids=lambda error: error.name)
def test_the_error_of_a_run_is_named_and_of_a_tape_with_advice(error: Error) -> None:
    _, program, memory = prepared()
    device = Device(memory, program)
    memory.set_registers(status=0b110, error=error, error_at=7)
    advice = f": {ADVICE[error]}" if error in ADVICE else ""
    text = f"the core stopped with error {error.name} at 7{advice}"
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        device.start()


def test_an_error_without_a_name_is_told_by_its_number() -> None:
    _, program, memory = prepared()
    device = Device(memory, program)
    memory.set_registers(status=0b110, error=99, error_at=7)
    with pytest.raises(DeviceError, match=r"^the core stopped with error 99 at 7$"):
        device.start()


def test_a_core_that_does_not_finish_is_told() -> None:
    _, program, memory = prepared()
    device = Device(memory, program)
    memory.idle = False
    most = most_cycles(program)

    def unfinished(limit: int) -> str:
        return (
            rf"^the core did not finish within {limit} cycles, the most that its program can take: "
            r"load it again, or reset the core$"
        )

    with pytest.raises(DeviceError, match=unfinished(sum(most))):
        device.start()
    assert memory.limit == sum(most)
    with pytest.raises(DeviceError, match=unfinished(most[1])):
        device.run_layer(1)
    assert memory.limit == most[1] < sum(most)


def test_a_core_that_another_host_keeps_busy_is_told() -> None:
    _, program, memory = prepared()
    memory.idle = False
    limit = sum(most_cycles(program))
    text = (
        rf"^the core is still busy with another host's run, after {limit} cycles: try again "
        r"later, or reset it$"
    )
    with pytest.raises(DeviceError, match=text):
        Device(memory, program)
    assert memory.limit == limit


def on_tape() -> tuple[Program, CoreMemory, Device]:
    program = compile_network(*drawn(3))
    cells = CoreMemory(program.config)
    return program, cells, Device(MemoryTransport(cells), program)


def test_a_tape_is_loaded_into_external_memory_and_only_once() -> None:
    program, cells, device = on_tape()
    ticks: list[int] = []
    for _ in range(2):
        device.load(lambda: ticks.append(0))
        assert cells.bytes(len(program.tape)) == program.tape
    assert len(cells.written) == len(program.tape) // 4
    assert len(ticks) == 1


def test_a_layer_of_a_tape_does_not_run_alone() -> None:
    _, cells, device = on_tape()
    text = r"^a layer of a tape cannot run alone: run the whole program$"
    with pytest.raises(ValueError, match=text):
        device.run_layer(0)
    assert CONTROL not in cells


def test_the_memory_is_calibrated_again_and_tells_its_captures() -> None:
    _, cells, device = on_tape()
    assert device.captures() == Captures(passed=(1, 2), used=1)
    assert cells.calibrations == 0
    assert device.recalibrate() == Captures(passed=(1, 2), used=1)
    assert (cells.calibrations, cells[CONTROL]) == (1, 2)
    _, program, memory = prepared()
    without = Device(memory, program)
    assert without.captures() is None
    text = r"^a core without external memory has none to calibrate$"
    with pytest.raises(ValueError, match=text):
        without.recalibrate()


def test_waits_are_those_of_a_tape() -> None:
    _, cells, device = on_tape()
    cells[regions.MEMORY_REGISTERS["wait_cycles"].address] = 12345
    assert device.wait_cycles() == 12345
    _, program, memory = prepared()
    assert Device(memory, program).wait_cycles() is None
