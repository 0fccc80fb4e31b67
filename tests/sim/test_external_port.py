"""What a host sees of a core with external memory: the memory behind its port, and the errors of
programs that a tape brings.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from simulators import (
    MIXED,
    UNCHECKED,
    absent,
    bench,
    external_core,
    external_network,
    needs_verilator,
)

from lbq_hw import golden, isa
from lbq_hw.compiler import Program, compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.host import Device, ExternalMemory
from lbq_hw.isa import Error, regions, tape
from lbq_hw.isa.record import Record
from lbq_hw.isa.regions import Region
from lbq_hw.sim.drawn.memories import random_access
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.verilator import Verilated

pytestmark = needs_verilator

LIMIT = 10_000_000
REGISTERS = {name: register.address for name, register in regions.MEMORY_REGISTERS.items()} | {
    name: register.address for name, register in regions.REGISTERS.items()
}
START, CLEAR = 1, 2
BUSY, DONE, FAILED = 1, 2, 4
ERRORS = {
    Region.LAYERS: ("layers", Error.LAYER),
    Region.PATHS: ("paths", Error.PATH),
    Region.SEGMENTS: ("segments", Error.SEGMENT),
    Region.RUNS: ("runs", Error.RUN),
}
"""Tables, and what the core says of an illegal record of each."""


@pytest.fixture(params=[0, MIXED[0]], ids=["single", "pairs"])
def shape(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def core(shape: int) -> Iterator[Verilated]:
    config, memory = external_core(shape)
    options = [*UNCHECKED, f"+sdram_access={random_access(shape)}"]
    with Verilated(bench(config, memory), options=options) as running:
        yield running


@pytest.fixture
def slices(shape: int) -> int:
    """Of the chip."""
    _, memory = external_core(shape)
    return min(memory.chip.words * memory.chip.data_bits // 32, regions.MEMORY_SLICES)


def place(slice_: int) -> int:
    """Of a slice of the memory, for the host."""
    return (Region.MEMORY << regions.SHIFT) + slice_


def test_every_address_line_reaches_a_slice_of_its_own(core: Verilated, slices: int) -> None:
    places = [0, *(1 << bit for bit in range((slices - 1).bit_length())), slices - 1]
    source = random.Random(1)
    words = [source.getrandbits(32) for _ in places]
    for at, word in zip(places, words, strict=True):
        core.write(place(at), [word])
    assert [core.read(place(at), 1)[0] for at in places] == words


def test_digests_are_those_of_zlib(core: Verilated, slices: int) -> None:
    source, memory = random.Random(2), ExternalMemory(core)
    size = 700
    for first in (0, slices // 2 - 300, slices - size):
        words = [source.getrandbits(32) for _ in range(size)]
        core.write(place(first), words)
        data = np.array(words, "<u4").tobytes()
        inside = [(source.randrange(350), source.randrange(350)) for _ in range(4)]
        for begin, count in ((0, 0), (0, 1), (0, size), *inside):
            wanted = zlib.crc32(data[4 * begin : 4 * (begin + count)])
            assert memory.digest(first + begin, count) == wanted


def test_the_self_test_writes_what_it_reads(core: Verilated) -> None:
    memory, last = ExternalMemory(core), 5000
    core.write(place(0), [1] * (last + 2))
    assert memory.test(last) == 0
    found = core.read(place(0), last + 2)
    assert found[-1] == 1
    assert len(set(found[:-1])) == last + 1


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A record in a tape: its table and entry, and the place of its word."""

    table: Region
    number: int
    item: int
    first: int
    count: int


def entries(config: CoreConfig, items: list[tape.TapeItem]) -> Iterator[Entry]:
    """The records of a tape."""
    for number, item in enumerate(items):
        if item.address in (tape.PASS, tape.END):
            continue
        region, first, part = tape.entry(config, item)
        if region not in ERRORS:
            continue
        size = tape.entry_slices(config, item)
        assert part == 0
        for index in range(len(item.payload) // size):
            yield Entry(
                table=region, number=first + index, item=number, first=index * size, count=size
            )


def with_record(config: CoreConfig, program: Program, entry: Entry, word: int) -> bytes:
    """The tape with another word for a record."""
    items = list(tape.decode(config, program.tape))
    payload = list(items[entry.item].payload)
    for index in range(entry.count):
        payload[entry.first + index] = word >> 32 * index & 0xFFFFFFFF
    items[entry.item] = replace(items[entry.item], payload=tuple(payload))
    rest = [item for item in items if item.address != tape.END]
    data = tape.encode(config, rest)
    return data + bytes(len(program.tape) - len(data))


def word_of(items: list[tape.TapeItem], entry: Entry) -> int:
    parts = items[entry.item].payload[entry.first : entry.first + entry.count]
    return sum(part << 32 * index for index, part in enumerate(parts))


def may_run_long(record: Record, config: CoreConfig, bit: int) -> bool:
    """Whether a bit belongs to the end of a loop, so that a run could take minutes."""
    return any(
        slot.offset <= bit < slot.offset + slot.width and name.endswith("_last")
        for name, slot in record.slots(config).items()
    )


def flips(config: CoreConfig, record: Record, word: int) -> tuple[list[int], list[int]]:
    """Bits that make a record illegal, and bits that do not."""
    illegal, legal = [], []
    for bit in range(sum(slot.width for slot in record.slots(config).values())):
        if record.violations(config, record.decode(config, word ^ 1 << bit)):
            illegal.append(bit)
        elif not (record is isa.LAYER and may_run_long(record, config, bit)):
            legal.append(bit)
    return illegal, legal


def test_an_illegal_record_of_a_tape_ends_the_run_with_the_error_of_its_table(
    core: Verilated, shape: int
) -> None:
    config, memory = external_core(shape)
    network = external_network(shape, 4)
    program = compile_network(network, config, timing=memory.timing)
    items = list(tape.decode(config, program.tape))
    [image] = random_images(network, 1, 4)
    device, source = Device(core, program), random.Random(4)

    def run(entry: Entry, word: int) -> tuple[Error, int]:
        """The error, and where it is."""
        core.load_tape(with_record(config, program, entry, word), config.external)
        device.write_image(image)
        core.write(REGISTERS["control"], [CLEAR])
        core.write(REGISTERS["control"], [START])
        assert core.wait(LIMIT), f"{entry}: {word:#x}"
        status, error, at = core.read(REGISTERS["status"], 3)
        assert status == (DONE | FAILED if error else DONE), f"{entry}: {word:#x}"
        return Error(error), at

    found, others = list(entries(config, items)), set()
    for table, (name, error) in ERRORS.items():
        record = isa.TABLES[name]
        own = [one for one in found if one.table == table]
        refused = 0
        for entry in source.choices(own, k=12):
            word = word_of(items, entry)
            illegal, legal = flips(config, record, word)
            for bit in illegal[:1] + illegal[1:][-1:]:
                assert run(entry, word ^ 1 << bit) == (error, entry.number), f"{entry}, bit {bit}"
                refused += 1
            others.add(run(entry, word ^ 1 << source.choice(legal))[0])
        for slot in record.slots(config).values():
            most, mask = slot.field.largest(config), (1 << slot.width) - 1
            if not slot.field.signed and most < mask:
                word = word_of(items, own[0]) & ~(mask << slot.offset) | most + 1 << slot.offset
                assert run(own[0], word) == (error, own[0].number), slot.field.name
        assert refused or table == Region.RUNS  # whose fields are all used where there are pairs
    assert Error.NONE in others
    core.load_tape(program.tape, config.external)
    wanted = golden.run(network, image[None]).logits[0]
    assert np.array_equal(device.run(image), wanted)


@pytest.mark.parametrize("mark", ["HEAD", "PASS", "END"])
def test_marks_of_a_tape_are_known_by_all_bits_of_their_addresses(
    core: Verilated, shape: int, mark: str
) -> None:
    config, memory = external_core(shape)
    network = external_network(shape, 4)
    program = compile_network(network, config, timing=memory.timing)
    rest = [*tape.decode(config, program.tape), tape.TapeItem(address=tape.END)]
    slices = sum(tape.ITEM_SLICES + len(item.payload) for item in (tape.head(config, 0), *rest))
    items = [tape.head(config, slices), *rest]
    address = getattr(tape, mark)
    place = next(number for number, item in enumerate(items) if item.address == address)
    # Flipped in its region, PASS or END may be a legal write; nothing else may come first.
    for bit in range(32 if mark == "HEAD" else regions.SHIFT):
        items[place] = replace(items[place], address=address ^ 1 << bit)
        core.load_tape(tape.joined(config, items), config.external)
        core.write(REGISTERS["control"], [CLEAR])
        core.write(REGISTERS["control"], [START])
        assert core.wait(LIMIT)
        assert core.read(REGISTERS["status"], 2) == [DONE | FAILED, Error.TAPE], bit
    core.load_tape(program.tape, config.external)
    [image] = random_images(network, 1, 4)
    wanted = golden.run(network, image[None]).logits[0]
    assert np.array_equal(Device(core, program).run(image), wanted)


@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_a_request_for_what_does_not_exist_is_refused(
    core: Verilated, shape: int, *, write: bool
) -> None:
    config, _ = external_core(shape)
    core.wait(LIMIT)
    for where, address in absent(config).items():
        core.write(REGISTERS["control"], [CLEAR])
        if write:
            core.write(address, [0xFFFFFFFF])
        else:
            assert core.read(address, 1) == [0], where
        assert core.read(REGISTERS["status"], 3) == [FAILED, Error.ADDRESS, 0], where


def test_requests_during_a_run_are_refused_and_change_nothing(core: Verilated, shape: int) -> None:
    config, memory = external_core(shape)
    network = external_network(shape, 4)
    program = compile_network(network, config, timing=memory.timing)
    [image] = random_images(network, 1, 4)
    wanted = golden.run(network, image[None]).logits[0]
    core.load_tape(program.tape, config.external)
    device = Device(core, program)
    own = ("digest_first", "digest_slices", "test_last", "captures")
    addresses = {name: REGISTERS[name] for name in ("control", *own)}
    slices = regions.slices(config)
    for region in regions.reached(config)[1:]:
        for slice_ in (0, slices[region] - 1):
            addresses[f"{region.name}, {slice_}"] = regions.address(config, region, 0, slice_)
    for name, address in addresses.items():
        device.write_image(image)
        core.write(REGISTERS["control"], [CLEAR])
        core.write(REGISTERS["control"], [START])
        core.write(address, [START])
        assert core.read(REGISTERS["status"], 3) == [BUSY | FAILED, Error.BUSY, 0], name
        assert core.wait(LIMIT), name
        assert np.array_equal(device.read_logits(), wanted), name
    assert np.array_equal(device.run(image), wanted)


def test_during_a_run_a_request_for_what_does_not_exist_has_an_error_of_its_own(
    core: Verilated, shape: int
) -> None:
    config, memory = external_core(shape)
    program = compile_network(external_network(shape, 4), config, timing=memory.timing)
    core.load_tape(program.tape, config.external)
    for where, address in absent(config).items():
        core.write(REGISTERS["control"], [CLEAR])
        core.write(REGISTERS["control"], [START])
        assert core.read(address, 1) == [0], where
        assert core.read(REGISTERS["status"], 3) == [BUSY | FAILED, Error.ADDRESS, 0], where
        assert core.wait(LIMIT), where
