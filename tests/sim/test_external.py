"""Networks larger than their core, from the pins of an SDRAM: exact in every level and cycle.

Each core is built once. Its networks are drawn, and so are chip, clock and access time of its
memory, so that refreshes fall anywhere and words come when they come.
"""

from __future__ import annotations

import json
import random
import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from simulators import (
    EXTERNAL_EACH,
    MIXED,
    bench,
    external_core,
    external_network,
    needs_verilator,
)

from lbq_hw import file, golden
from lbq_hw.compiler import compile_network
from lbq_hw.host import Device, DeviceError
from lbq_hw.host.memory import Captures
from lbq_hw.isa import Error, regions, tape
from lbq_hw.sim import command
from lbq_hw.sim.check import check
from lbq_hw.sim.drawn.memories import random_access
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.verilator import Verilated

pytestmark = needs_verilator

SHAPES = (0, 1, 2, 3, 4, 5, 8, 26)  # 3, 8 and 26 have pairs
SAMPLE = 6


def running(shape: int) -> Verilated:
    config, memory = external_core(shape)
    options = [f"+sdram_access={random_access(shape)}"]
    return Verilated(bench(config, memory), options=options)


def assert_exact(shape: int, numbers: range) -> None:
    config, memory = external_core(shape)
    larger = 0
    with running(shape) as core:
        for number in numbers:
            network = external_network(shape, number)
            program = compile_network(network, config, timing=memory.timing)
            assert len(program.tape) <= memory.chip.words * memory.chip.data_bits // 8
            larger += len(program.passes) > len(program.info)
            images = random_images(network, 1, number)
            outcome = check(network, program, core, images, timing=memory.timing)
            assert outcome.difference is None, f"network {number}: {outcome.difference}"
            assert outcome.cycles == outcome.predicted, f"network {number}"
            assert outcome.cycles > 0
    assert larger > len(numbers) // 2  # most have a layer that does not fit at once


@pytest.mark.parametrize(
    ("shape", "pairs"), [pytest.param(0, 0, marks=pytest.mark.slow), (MIXED[0], 1)]
)
def test_networks_larger_than_a_core_are_exact_in_levels_and_cycles(shape: int, pairs: int) -> None:
    assert external_core(shape)[0].pairs == pairs
    assert_exact(shape, range(SAMPLE))


@pytest.mark.parametrize("shape", [0, *MIXED])
def test_rows_of_fewer_bits_are_on_the_tape_of_networks_that_have_them(shape: int) -> None:
    config, memory = external_core(shape)
    assert bool(config.narrow) == (shape in MIXED)
    for number in range(SAMPLE):
        program = compile_network(external_network(shape, number), config, timing=memory.timing)
        regions = {item.address >> 28 for item in tape.decode(config, program.tape)}
        assert bool(regions & {*tape.NARROW}) == (shape in MIXED)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*SHAPES, *MIXED])
def test_550_networks_larger_than_cores_of_many_shapes_are_exact(shape: int) -> None:
    assert_exact(shape, range(EXTERNAL_EACH))


def corrupt(source: random.Random, data: bytes, page: int) -> tuple[str, bytes]:
    """A tape with wrong bits, a missing end or part, or blocks or items in each other's place."""
    size = used(data)
    kind, wrong = source.choice(("bits", "cut", "swap", "items", "missing")), bytearray(data)
    if kind == "bits":
        for place in source.sample(range(8 * size), source.randint(1, 4)):
            wrong[place // 8] ^= 1 << place % 8
    elif kind == "cut":
        place = source.randrange(size)
        wrong[place:] = source.choice((b"\x00", b"\xff")) * (len(data) - place)
    elif kind == "swap":
        block = source.choice((4, 16, 64, page))
        one, other = (block * source.randrange(-(-size // block)) for _ in range(2))
        wrong[one : one + block], wrong[other : other + block] = (
            data[other : other + block],
            data[one : one + block],
        )
    elif kind == "items":
        starts = item_starts(data)
        one, other = sorted(source.sample(range(len(starts) - 1), 2))
        parts = [data[begin:end] for begin, end in pairwise(starts)]
        parts[one], parts[other] = parts[other], parts[one]
        wrong[:size] = b"".join(parts)
    else:
        place, count = 4 * source.randrange(size // 4), 4 * source.randint(1, 40)
        wrong[place:] = data[place + count :] + bytes(min(count, len(data) - place))
    return kind, bytes(wrong)


def used(data: bytes) -> int:
    """Bytes of a tape up to the end of END, as its HEAD has them."""
    return int.from_bytes(data[16:20], "little") * 4


def item_starts(data: bytes) -> list[int]:
    """Where the items of a tape begin, and where the last one ends."""
    starts = [0]
    while starts[-1] < used(data):
        [count] = struct.unpack_from("<H", data, starts[-1] + 4)
        starts.append(starts[-1] + 4 * (tape.ITEM_SLICES + count))
    return starts


def assert_errors(shape: int, count: int, per_network: int) -> None:
    """Every corrupted tape ends in an error, and the next good one is right."""
    config, memory = external_core(shape)
    source = random.Random(shape)
    registers = {name: register.address for name, register in regions.REGISTERS.items()}
    kinds: dict[str, int] = {}
    with running(shape) as core:
        for number in range(count // per_network):
            network = external_network(shape, number)
            program = compile_network(network, config, timing=memory.timing)
            [image] = random_images(network, 1, number)
            device = Device(core, program)
            done = 0
            while done < per_network:
                kind, data = corrupt(source, program.tape, memory.chip.page_words * 2)
                size = used(program.tape)
                if data[:size] == program.tape[:size]:  # what was exchanged was the same
                    continue
                with pytest.raises(tape.TapeError):
                    list(tape.decode(config, data))
                core.load_tape(data + bytes(-len(data) % 4), config.external)
                device.write_image(image)
                core.write(registers["control"], [2])
                core.write(registers["control"], [1])
                assert core.wait(10_000_000), f"network {number}, {kind} hangs"
                assert core.read(registers["status"], 1) == [6], f"network {number}, {kind}"
                [error] = core.read(registers["error"], 1)
                assert error in set(Error) - {Error.NONE}
                kinds[kind], done = kinds.get(kind, 0) + 1, done + 1
            core.load_tape(program.tape, config.external)
            wanted = golden.run(network, image[None]).logits[0]
            assert np.array_equal(device.run(image), wanted)
    assert sum(kinds.values()) == count
    assert len(kinds) == 5


def test_corrupted_tapes_end_in_errors_and_never_hang() -> None:
    assert_errors(0, 40, 20)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES[:4])
def test_1000_corrupted_tapes_end_in_errors_and_never_hang(shape: int) -> None:
    assert_errors(shape, 250, 10)


def test_the_command_runs_a_core_with_external_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, memory = external_core(0)
    network = external_network(0, 1)
    bench(config, memory)
    file.save(network, tmp_path / "net.lbq")
    (tmp_path / "core.json").write_text(config.to_json(), encoding="utf-8")
    arguments = ["--model", str(tmp_path / "net.lbq"), "--core", str(tmp_path / "core.json")]
    assert command.main([*arguments, "--images", "2", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["bit_exact"], facts["on_time"], facts["images"]) == (True, True, 2)
    assert facts["clock_hz"] == memory.clock_hz
    assert facts["images_per_second"] == memory.clock_hz / facts["cycles"]
    size = len(compile_network(network, config, timing=memory.timing).tape)
    external = facts["external"]
    assert external["bytes"] == size
    assert external["bytes_per_second"] == size / (facts["cycles"] / memory.clock_hz)
    assert 0 < external["wait_cycles"] < facts["cycles"]
    assert sum(layer["cycles"] for layer in facts["layers"]) == facts["cycles"]
    assert command.main([*arguments, "--simulator", "icarus"]) == 2
    assert capsys.readouterr().err == (
        "error: a core with external memory must be simulated with verilator\n"
    )
    assert command.main([*arguments, "--board", "icebreaker"]) == 2
    told = f"error: board icebreaker has no external memory of {config.external} bits\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(("drift", "error"), [(4_000, "CRC"), (-8_000, "TAPE")])
def test_words_that_drift_end_in_an_error_and_another_calibration_helps(
    drift: int, error: str
) -> None:
    """The eye begins at 9 ns, and 12.5 is in it; in the end 18.75 is, or 6.25, and no other. The
    first words that are wrong are those of an item, or the HEAD of a run.
    """
    config, memory = external_core(0)
    assert memory.clock_hz == 80_000_000
    network = external_network(0, 1)
    program = compile_network(network, config, timing=memory.timing)
    [image] = random_images(network, 1, 1)
    wanted = golden.run(network, image[None]).logits[0]
    options = ["+sdram_access=9000", "+sdram_hold=6100", f"+sdram_drift={drift}"]
    options += ["+sdram_drift_begin=20000", "+sdram_drift_end=60000"]
    ends: list[str] = []
    with Verilated(bench(config, memory), options=options) as core:
        core.load_tape(program.tape, config.external)
        device = Device(core, program)
        before = device.captures()
        for _ in range(40):  # many of which are short
            try:
                assert np.array_equal(device.run(image), wanted)
                ends.append("right")
            except DeviceError as told:
                ends.append(str(told).partition(" at ")[0])
        after = device.recalibrate()
        assert np.array_equal(device.run(image), wanted)
        right = ends.count("right")
        assert ends[: right + 1] == ["right"] * right + [f"the core stopped with error {error}"]
        assert right > 0
        assert set(ends[right + 1 :]) == {"the core stopped with error TAPE"}  # at its HEAD
        assert (before, after) == (
            Captures(passed=(1,), used=1),
            Captures(passed=(2,), used=2) if drift > 0 else Captures(passed=(0,), used=0),
        )


def test_a_memory_whose_words_are_never_right_is_an_error() -> None:
    config, memory = external_core(0)
    network = external_network(0, 1)
    program = compile_network(network, config, timing=memory.timing)
    options = ["+sdram_access=13000", "+sdram_hold=700"]
    with Verilated(bench(config, memory), options=options) as core:
        core.load_tape(program.tape, config.external)
        core.write(regions.REGISTERS["control"].address, [1])
        core.wait(100)
        assert core.read(regions.REGISTERS["error"].address, 1) == [Error.MEMORY]
