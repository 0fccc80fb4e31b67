"""Host, line, core and an external memory: a tape goes over the line, and networks run from it."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from memory_board import MemoryBoard
from simulators import CACHE, needs_verilator
from tapes import drawn

from lbq_hw import file, package
from lbq_hw.compiler import compile_network
from lbq_hw.host import Device, DeviceError, ExternalMemory, SerialTransport
from lbq_hw.host.__main__ import main
from lbq_hw.host.memory import pieces
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region
from lbq_hw.package import Package
from lbq_hw.sim import board
from lbq_hw.sim.board import BENCH, Board
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.verilator import build_bench
from lbq_hw.sim.verilog import convert_large

pytestmark = needs_verilator
CLOCK_HZ, BAUD = 12_000_000, 3_000_000
SEED, IMAGES = 3, 3
PAYLOAD = 6 + 2
"""First slice of the payload of the first item after HEAD."""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Package:
    folder = tmp_path_factory.mktemp("tape")
    network, config = drawn(SEED)
    file.save(network, folder / "net.lbq")
    return package.write(
        folder / "package",
        board="sim",
        config=config,
        model=folder / "net.lbq",
        clock_hz=CLOCK_HZ,
        baud=BAUD,
        baked=False,
        bitstream=None,
        images=random_images(network, IMAGES, SEED),
        tape=compile_network(network, config).tape,
    )


def slices(packed: Package) -> int:
    """Of the memory: more than the tape has, and the last one has a bit that is always 1."""
    return 2 << (len(packed.tape) // 4 - 1).bit_length()


@pytest.fixture(scope="module")
def program(packed: Package) -> Path:
    count = slices(packed)
    made = MemoryBoard(packed.config, clock_hz=CLOCK_HZ, baud=BAUD, slices=count, stuck=count - 1)
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "memory_board.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = convert_large(made, name="system")
        return build_bench(text, BENCH, top="system", cache=CACHE)


@pytest.fixture
def running(program: Path) -> Iterator[Board]:
    with board.running(program, clock_hz=CLOCK_HZ) as simulated:
        yield simulated


def host(simulated: Board, packed: Package, *more: str) -> int:
    return main(["--port", simulated.name, "--package", str(packed.folder), *more])


def test_a_network_runs_from_a_tape_that_went_over_the_line_once(
    running: Board, packed: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for more in ([], [], ["--reload"], ["--no-load"]):
        assert host(running, packed, "--selftest", "--json", *more) == 0
        out, err = capsys.readouterr()
        assert err == ""
        found.append(json.loads(out))
    assert all(facts["equal"] for facts in found)
    assert [facts["uploaded"] for facts in found] == [True, False, True, False]
    count = len(pieces(packed.tape))
    assert [facts["tape"]["written"] for facts in found] == [count, 0, count, 0]
    assert {facts["tape"]["pieces"] for facts in found} == {count}
    tape = found[0]["tape"]
    assert tape["bytes"] == len(packed.tape)
    assert 0 < tape["estimate"] < tape["seconds"]  # the host's pauses come on top
    assert tape["bytes_per_second"] == tape["bytes"] / tape["seconds"] < BAUD / 10
    assert all(0 < facts["wait_cycles"] < facts["cycles"] for facts in found)


def test_an_upload_is_announced_and_shown(
    running: Board, packed: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    assert host(running, packed, "--no-load", "--selftest") == 2
    text = "error: the external memory does not hold this model: leave out --no-load to upload it\n"
    assert capsys.readouterr().err == text
    assert host(running, packed, "--selftest") == 0
    out, err = capsys.readouterr()
    first, second = err.splitlines()
    size, count = len(packed.tape) / 1e6, len(pieces(packed.tape))
    assert first.startswith(f"upload: {count} of {count} pieces, {size:.3g} MB, about ")
    assert first.endswith(" ms at 3,000,000 baud")
    assert second.endswith(" kB/s")
    assert "all logits equal" in out
    assert "of these cycles, for the tape" in out
    assert host(running, packed, "--selftest") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "none: the memory holds it" in out


def test_an_upload_that_was_killed_goes_on(
    running: Board, packed: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--port", running.name, "--package", str(packed.folder), "--selftest"]
    command = [sys.executable, "-m", "lbq_hw.host", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as killed:
        assert killed.stderr is not None
        assert killed.stderr.readline().startswith("upload: ")
        killed.send_signal(signal.SIGKILL)
    time.sleep(0.5)
    assert host(running, packed, "--selftest", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["equal"] is True


def test_a_tape_that_was_altered_ends_in_an_error_that_says_what_to_do(
    running: Board, packed: Package
) -> None:
    program = compile_network(packed.network, packed.config)
    with SerialTransport.open(running.name, baud=BAUD) as line:
        device = Device(line, program)
        device.load()
        place = regions.address(packed.config, Region.MEMORY, PAYLOAD)
        [word] = line.read(place, 1)
        assert word == int.from_bytes(packed.tape[4 * PAYLOAD :][:4], "little")
        line.write(place, [word ^ 0x00010000])
        text = (
            r"^the core stopped with error CRC at 0: the tape in its memory was altered, or the "
            r"board has become warmer or colder since its memory was calibrated: run with "
            r"--recalibrate, and if that does not help, test the memory with --memory-test$"
        )
        with pytest.raises(DeviceError, match=text):
            device.start()
        device.load()
        [image] = random_images(packed.network, 1, SEED)
        assert (device.run(image) == packed.selftest.logits[0]).all()  # type: ignore[union-attr]


def test_a_memory_test_finds_the_slice_that_is_broken(
    running: Board, packed: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    assert host(running, packed, "--selftest", "--json") == 0
    assert json.loads(capsys.readouterr().out)["tape"]["written"] == 1
    assert host(running, packed, "--memory-test", "--json") == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["differing_words"] == 1  # where a bit is always 1, one of two patterns is right
    assert facts["config"] == packed.config.digest
    with SerialTransport.open(running.name, baud=BAUD) as line:
        memory = ExternalMemory(line)
        assert memory.test(last=slices(packed) - 2) == 0
        assert memory.test(last=slices(packed) - 1) == 1
    # The tests have overwritten the tape.
    assert host(running, packed, "--selftest", "--json") == 0
    assert json.loads(capsys.readouterr().out)["tape"]["written"] == 1


def test_a_slice_that_keeps_nothing_ends_the_upload(running: Board, packed: Package) -> None:
    last = slices(packed) - 1
    text = (
        f"^the external memory does not keep what is written to slices 0 to {last}: run with "
        "--recalibrate, and if that does not help, test it with --memory-test$"
    )
    with SerialTransport.open(running.name, baud=BAUD) as line:
        memory = ExternalMemory(line)
        with pytest.raises(DeviceError, match=text):
            memory.upload(pieces(packed.tape.ljust(4 * last + 4, b"\0")))
        memory.upload(pieces(packed.tape.ljust(4 * last + 4, b"\xff")))
