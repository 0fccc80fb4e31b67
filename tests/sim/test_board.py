"""Host, line, link and core together: a board in Verilator behind a pseudo-terminal."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import serial
from link_model import DAMAGE, FLAG, Model, lie, lose_a_stop_bit
from live.browser import BROWSER, Browser
from PIL import Image
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo
from simulators import CACHE, digits, needs_verilator

from lbq_hw import datasets, golden, package, selftest, zoo
from lbq_hw.bring_up import __main__ as bring_up
from lbq_hw.compiler import Program, compile_network, smallest_for
from lbq_hw.datasets.fitting import Samples
from lbq_hw.host import Device, LinkError, SerialTransport, clock
from lbq_hw.host.__main__ import main
from lbq_hw.host.frames import Request
from lbq_hw.host.line import PAUSE as BREAK
from lbq_hw.host.rates import agree, possible
from lbq_hw.isa import regions
from lbq_hw.isa.link import Command
from lbq_hw.isa.regions import Region
from lbq_hw.live.answers import Live
from lbq_hw.live.machines import board as live_board
from lbq_hw.live.server import LiveServer
from lbq_hw.package import Package
from lbq_hw.sim import board
from lbq_hw.sim.board import Board
from lbq_hw.sim.verilator import build_bench

pytestmark = needs_verilator
CLOCK_HZ, BAUD = 12_000_000, 3_000_000
SHORT = 0.05
"""A time-out in seconds: longer than any answer takes, much shorter than a pause on the wall."""
PAUSE = 40 * SHORT
"""Seconds on the wall: longer than all attempts with that time-out."""
DEAF = """
module system(input clk, rst, rx, output tx, busy);
  assign {tx, busy} = 2'b10;
endmodule
"""
"""A board that never answers."""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return package.write(
        tmp_path_factory.mktemp("board") / "digits",
        board="sim",
        config=smallest_for(digits(), lanes=4, word=32),
        model=zoo.find("digits"),
        clock_hz=CLOCK_HZ,
        baud=BAUD,
        baked=True,
        bitstream=None,
        images=datasets.load("digits", split="test").images[:3],
    )


@pytest.fixture(scope="module")
def program(packed: Package) -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "board.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return board.build(packed, cache=CACHE)


@pytest.fixture(scope="module")
def running(program: Path) -> Iterator[Board]:
    with board.running(program, clock_hz=CLOCK_HZ) as simulated:
        yield simulated


def compiled(packed: Package) -> Program:
    return compile_network(packed.network, packed.config)


def host(running: Board, folder: Path, *more: str) -> list[str]:
    port = ["--port", running.name, "--package", str(folder)]
    return [*port, "--images", "3", "--compare", *more]


@contextmanager
def stopped(simulated: Board) -> Iterator[None]:
    """A simulation that gets no time of its machine."""
    os.kill(simulated.process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(simulated.process, signal.SIGCONT)


def test_the_host_predicts_over_the_line_as_golden_does(
    program: Path, packed: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = packed.folder
    with board.running(program, clock_hz=CLOCK_HZ) as fresh:
        found = []
        for more in ([], ["--reload"], []):
            assert main(host(fresh, folder, "--json", *more)) == 0
            found.append(json.loads(capsys.readouterr().out))
        # The upload has taken the place of what the bitstream brought.
        assert main(host(fresh, folder, "--no-load")) == 2
        text = (
            "error: the bitstream does not contain this model: leave out --no-load to upload it\n"
        )
        assert capsys.readouterr().err == text
        assert main(host(fresh, folder)) == 0
        assert "all logits equal" in capsys.readouterr().out
    assert [facts["uploaded"] for facts in found] == [False, True, True]
    for facts in found:
        assert (facts["equal"], facts["differing"], facts["images"]) == (True, [], 3)
        assert facts["latency_us"] == pytest.approx(facts["cycles"] / 12, rel=1e-12)
        assert facts["repeated_frames"] == 0
    assert found[0]["cycles"] == found[1]["cycles"] == found[2]["cycles"] > 0


def test_the_live_page_on_the_board(running: Board, packed: Package, tmp_path: Path) -> None:
    """What is drawn is run by the board, and equals golden."""
    assert packed.selftest is not None
    samples = Samples(name="self-test", images=packed.selftest.images, labels=None)
    with live_board(packed, running.name) as machine:
        live = Live.of(packed.network, machine, samples)
        answer = live.sample(1)
        assert answer["logits"] == packed.selftest.logits[1].tolist()
        assert answer["equal"] is True
        assert answer["core_seconds"] == answer["cycles"] / CLOCK_HZ
        assert live.facts()["where"] == "sim"
        if BROWSER is None:
            return
        with LiveServer(live, 0) as server, Browser(tmp_path) as browser:
            threading.Thread(target=server.serve_forever).start()
            browser.show(server.url, width=1280, height=1000, dark=False)
            browser.until(
                "document.readyState === 'complete' && typeof facts === 'object' && facts "
                "&& at === 0 && !running"
            )
            left, top, side = browser.evaluate(
                "(box => [box.left, box.top, box.width])(pad.getBoundingClientRect())"
            )
            browser.drag([(left + side / 2, top + side * part / 10) for part in range(2, 9)])
            browser.until("drawn && !running && one('place').textContent === ''")
            assert browser.until("/equal/.test(one('figures').textContent)")
            assert browser.evaluate("one('class').textContent") == "1"
            server.shutdown()


def test_the_self_test_finds_the_board_and_what_differs(
    running: Board,
    packed: Package,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of two USB ports, one has a terminal that answers nothing."""
    deaf, slave = os.openpty()
    plugged = [ListPortInfo(os.ttyname(slave)), ListPortInfo(running.name)]
    for info in plugged:
        info.vid, info.pid = 0x0403, 0x6015
    monkeypatch.setattr(list_ports, "comports", lambda: plugged)
    try:
        assert main(["--package", str(packed.folder), "--selftest", "--json"]) == 0
    finally:
        os.close(slave)
        os.close(deaf)
    facts = json.loads(capsys.readouterr().out)
    assert (facts["equal"], facts["images"], facts["dataset"]) == (True, 3, "self-test")

    # The same package with one logit that is another.
    folder = tmp_path / "package"
    shutil.copytree(packed.folder, folder)
    assert packed.selftest is not None
    logits = packed.selftest.logits.copy()
    logits[1, 4] += 1
    path = folder / package.SELFTEST
    selftest.save(replace(packed.selftest, logits=logits), path)
    manifest = json.loads((folder / package.MANIFEST).read_text("utf-8"))
    manifest["sha256"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / package.MANIFEST).write_text(json.dumps(manifest), "utf-8")
    arguments = ["--port", running.name, "--package", str(folder), "--selftest"]
    assert main([*arguments, "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert (facts["equal"], facts["differing"]) == (False, [1])


def test_the_walk_of_first_light_ends_with_all_logits_equal(
    running: Board, packed: Package, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.md"
    arguments = ["--board", "sim", "--package", str(packed.folder), "--report", str(report)]
    assert bring_up.main([*arguments, "--port", running.name, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {step["name"]: step["state"] for step in facts["steps"]} == {
        "tool": "skipped", "usb": "skipped", "port": "ok", "rights": "ok", "load": "skipped",
        "link": "ok", "memory": "skipped", "self-test": "ok", "rate": "ok",
    }  # fmt: skip
    steps = {step["name"]: step["facts"] for step in facts["steps"]}
    test = steps["self-test"]
    assert (test["inputs"], test["differing"], test["repeated_frames"]) == (3, [], 0)
    rate = steps["rate"]
    assert (rate["equal"], rate["repeated_frames"], rate["rates"]) == (True, 0, {})
    # 2 KB each way per KB of words, and the frames around them: not more than the line carries.
    assert BAUD / 10 / 2 < rate["bytes_per_second"] < BAUD / 10
    assert report.read_text("utf-8").startswith("# Bring-up of sim\n")


def test_the_core_is_brought_to_the_highest_rate_that_works(
    running: Board, packed: Package
) -> None:
    """As if a reset had left it at 1 Mbaud."""
    slow = replace(packed, baud=1_000_000, rates=(3_000_000, 2_000_000))
    rates = possible(slow.rates, clock_hz=CLOCK_HZ, baud=slow.baud)
    with SerialTransport.open(running.name, baud=BAUD) as line:
        line.set_rate(slow.baud, clock_hz=CLOCK_HZ)
        agree(line, slow, rates)
        assert (line.baud, line.repeats, line.simulated) == (3_000_000, 0, True)
        assert line.read(0, 1) == [regions.MAGIC]


def test_another_bitstream_is_refused(
    running: Board, packed: Package, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = packed.config.with_(fifo_depth=32)
    facts = {"board": "sim", "clock_hz": CLOCK_HZ, "baud": BAUD, "baked": False}
    other = package.write(
        tmp_path / "a", config=config, model=zoo.find("digits"), bitstream=None, **facts
    )
    assert main(host(running, other.folder)) == 2
    wanted, there = (int(c.digest[:8], 16) for c in (config, packed.config))
    text = (
        f"error: the core must be LBQ1 with config {wanted:08x}, not {regions.MAGIC:08x} with "
        f"{there:08x}: load the bitstream of this program\n"
    )
    assert capsys.readouterr().err == text


def test_500_damaged_frames_on_the_pins(running: Board, packed: Package) -> None:
    """What the core answers, byte by byte, and what its memory holds afterwards."""
    source = random.Random(9)
    base = Region.PLANES << regions.SHIFT
    size = min(256, packed.config.plane_words)
    kinds = [damage for damage in DAMAGE if damage not in (lie, lose_a_stop_bit)]
    model, stream = Model(), bytearray()

    def send(data: bytes) -> None:
        for byte in data:
            stream.append(byte)
            if byte == FLAG:
                before = len(model.sent)
                model.take((FLAG,))
                # Empty frames, until the answer must have left.
                stream.extend(bytes((FLAG,)) * (len(model.sent) - before + 10))
            else:
                model.take((byte,))

    def draw(sequence: int) -> Request:
        count = source.randrange(8)
        address = base + source.randrange(size - 8)
        if source.randrange(2):
            return Request(sequence=sequence, command=Command.READ, address=address, words=count)
        data = tuple(source.getrandbits(32) for _ in range(count))
        return Request(sequence=sequence, command=Command.WRITE, address=address, data=data)

    send(Request(sequence=0, command=Command.SYNC).encode())
    for first in range(0, size, 32):
        zeros = (0,) * 32
        number = first // 32 + 1
        command = {"sequence": number, "command": Command.WRITE}
        send(Request(**command, address=base + first, data=zeros).encode())
    for _ in range(500):
        assert model.last is not None
        whole = draw((model.last + source.choice((0, 1, 1, 1, 2))) % 256).encode()
        send(bytes([*source.choice(kinds)(source, list(whole)), FLAG]))
        send(draw((model.last + 1) % 256).encode())
    with serial.Serial(running.name, BAUD, timeout=0.05) as port:
        received = bytearray()
        for at in range(0, len(stream), 1024):
            port.write(stream[at : at + 1024])
            received += port.read(port.in_waiting)
        seconds = clock.of_simulation(port)
        assert seconds is not None
        deadline, late = seconds() + 1, False
        while len(received) < len(model.sent) and not late:
            late = seconds() > deadline
            received += port.read(4096)
    assert bytes(received) == model.sent
    with SerialTransport.open(running.name, baud=BAUD) as line:
        assert line.read(base, size) == [model.memory[base + i] for i in range(size)]


def test_bytes_that_the_host_escapes_arrive(running: Board) -> None:
    base, words = Region.PLANES << regions.SHIFT, [0x18181818, 0x0A0D0318, 0x38187D7E] * 25
    with SerialTransport.open(running.name, baud=BAUD) as line:
        for _ in range(256):  # each sequence number
            line.write(base + 0x18, words[:1])
        line.write(base, words)
        assert line.read(base, len(words)) == words
        assert line.repeats == 0


def test_the_rate_can_be_changed_and_another_rate_is_not_understood(running: Board) -> None:
    with serial.Serial(running.name, BAUD, timeout=0.02) as port:
        line = SerialTransport(port, clock=clock.of_simulation(port) or time.monotonic)
        line.set_rate(CLOCK_HZ // 12, clock_hz=CLOCK_HZ)
        assert port.baudrate == CLOCK_HZ // 12
        assert line.read(0, 1) == [regions.MAGIC]
        line.set_rate(BAUD, clock_hz=CLOCK_HZ)
    with pytest.raises(LinkError, match=r"^the core does not answer \(6 attempts\): "):
        SerialTransport.open(running.name, baud=CLOCK_HZ // 7, timeout=SHORT)
    with SerialTransport.open(running.name, baud=BAUD) as line:
        assert line.read(0, 1) == [regions.MAGIC]


@pytest.mark.parametrize("cycles", [5, 104, 4095])
def test_a_core_that_was_left_at_another_rate_is_brought_back(running: Board, cycles: int) -> None:
    """Also at its slowest rate, 2931 baud: the break is longer than a byte of it."""
    with serial.Serial(running.name, BAUD, timeout=0.02) as port:
        seconds = clock.of_simulation(port)
        assert seconds is not None
        rate = -(-CLOCK_HZ // cycles)
        SerialTransport(port, clock=seconds).set_rate(rate, clock_hz=CLOCK_HZ)
    with SerialTransport.open(running.name, baud=BAUD, timeout=SHORT) as opened:
        assert opened.read(0, 1) == [regions.MAGIC]
        assert opened.repeats > 0


def test_the_host_runs_at_another_rate_and_leaves_the_usual_one(
    running: Board, packed: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in (["--baud", str(CLOCK_HZ // 12)], []):
        assert main(host(running, packed.folder, "--json", *more)) == 0
        assert json.loads(capsys.readouterr().out)["equal"]
    assert main(host(running, packed.folder, "--baud", "100")) == 2
    assert capsys.readouterr().err.startswith("error: baud must be ")


@pytest.mark.parametrize("option", ["--raw", "--picture"])
def test_the_host_tells_the_classes_of_images_without_labels(
    option: str,
    running: Board,
    packed: Package,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    images = datasets.load("digits", split="test").images[:2]
    if option == "--raw":
        paths = [str(tmp_path / "raw.npy")]
        np.save(paths[0], images)
    else:
        paths = [str(tmp_path / f"{number}.png") for number in range(2)]
        for path, image in zip(paths, images, strict=True):
            shades = np.rint(image[0] * (255 / 16)).astype(np.uint8)  # white is 16 here
            Image.fromarray(shades).save(path)
    arguments = host(running, packed.folder, option, *paths)
    wanted = golden.run(packed.network, images).classes.tolist()
    assert main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["equal"], facts["accuracy"], facts["classes"]) == (True, None, wanted)
    assert main(arguments) == 0
    assert re.search(rf"classes +│ {wanted[0]} {wanted[1]} ", capsys.readouterr().out)


def test_a_board_that_loses_power_is_told(program: Path, packed: Package) -> None:
    images = datasets.load("digits", split="test").images[:2]
    with (
        board.running(program, clock_hz=CLOCK_HZ) as simulated,
        SerialTransport.open(simulated.name, baud=BAUD) as line,
    ):
        device = Device(line, compiled(packed))
        device.load()
        assert np.array_equal(device.predict(images), golden.run(packed.network, images).classes)
        simulated.stop()
        with pytest.raises(LinkError, match=r"^the port is gone "):
            device.predict(images)


def test_a_simulation_slower_than_the_time_out_costs_no_frame(running: Board) -> None:
    base, words = Region.PLANES << regions.SHIFT, list(range(200))
    with SerialTransport.open(running.name, baud=BAUD, timeout=SHORT) as line:
        for _ in range(3):
            with stopped(running):
                goes_on = threading.Timer(PAUSE, os.kill, (running.process, signal.SIGCONT))
                goes_on.start()
                line.write(base, words)
                goes_on.join()
            assert line.read(base, 200) == words
        assert line.repeats == 0


def test_a_host_in_another_process_knows_the_time_of_the_simulation(
    running: Board, packed: Package
) -> None:
    options = host(running, packed.folder, "--reload", "--json", "--timeout", str(SHORT))
    command = [sys.executable, "-m", "lbq_hw.host", *options]
    with serial.Serial(running.name, 9600) as port, stopped(running):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        while termios.tcgetattr(port.fileno())[5] != termios.B3000000 and process.poll() is None:
            time.sleep(0.02)  # until the host has opened it
        time.sleep(PAUSE)
        assert process.poll() is None
    facts = json.loads(process.communicate()[0])
    assert (facts["equal"], facts["uploaded"], facts["repeated_frames"]) == (True, True, 0)


def test_a_simulation_that_dies_is_told_at_once(program: Path) -> None:
    with (
        board.running(program, clock_hz=CLOCK_HZ) as simulated,
        SerialTransport.open(simulated.name, baud=BAUD, timeout=3600) as line,
        stopped(simulated),
    ):
        threading.Timer(0.5, os.kill, (simulated.process, signal.SIGKILL)).start()
        with pytest.raises(LinkError, match=r"^the port is gone "):
            line.read(0, 1)


def test_a_board_that_never_answers_is_given_up_after_simulated_seconds() -> None:
    deaf = build_bench(DEAF, board.BENCH, top="system", cache=CACHE)
    text = (
        "the core does not answer (6 attempts): check that the board is powered and has its "
        "bitstream, and that port and baud are right"
    )
    with (
        board.running(deaf, clock_hz=CLOCK_HZ) as simulated,
        serial.Serial(simulated.name, BAUD, timeout=0.02) as port,
    ):
        seconds = clock.of_simulation(port)
        assert seconds is not None
        began = seconds()
        with pytest.raises(LinkError, match=f"^{re.escape(text)}$"):
            SerialTransport(port, timeout=SHORT, clock=seconds)
        # Two waits of 1 and 2 time-outs, a break, six waits of 1, 2, 3, 3, 3 and 3 time-outs, and
        # a quarter of one after each but the last.
        assert seconds() - began > 3.25 * SHORT + BREAK + 16.25 * SHORT


def test_answers_come_while_the_host_still_sends(running: Board) -> None:
    flags = bytes((FLAG,)) * 3000
    request = Request(sequence=5, command=Command.SYNC).encode()
    with serial.Serial(running.name, BAUD, timeout=0.02) as port:
        seconds = clock.of_simulation(port)
        assert seconds is not None
        line = SerialTransport(port, clock=seconds)
        rate = CLOCK_HZ // 60
        line.set_rate(rate, clock_hz=CLOCK_HZ)
        with stopped(running):
            began = seconds()
            port.write(request + flags)
        while not port.read(1):
            pass
        assert seconds() - began < 10 * len(flags) / rate
        while port.read(4096) or seconds() < began + 10 * len(flags) / rate:
            pass
        SerialTransport(port, clock=seconds).set_rate(BAUD, clock_hz=CLOCK_HZ)


def test_a_board_ends_when_the_host_hangs_up(program: Path) -> None:
    simulated = Board(program, clock_hz=CLOCK_HZ, once=True)
    try:
        SerialTransport.open(simulated.name, baud=BAUD).close()
        assert simulated.wait() == 0
    finally:
        simulated.stop()


def test_a_package_that_is_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert board.main(["--package", str(tmp_path)]) == 2
    text = f"error: {tmp_path} is not a package: it has no package.json\n"
    assert capsys.readouterr().err == text
    assert main(["--port", "x", "--package", str(tmp_path)]) == 2
    text = f"error: {tmp_path} is not a package: it has no package.json\n"
    assert capsys.readouterr().err == text


@pytest.mark.usefixtures("program")  # built
def test_a_model_in_the_bitstream_runs_without_an_upload(
    packed: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--no-load", "--images", "2", "--compare", "--json"]
    assert board.main(["--package", str(packed.folder), "--host", *options]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["uploaded"], facts["images"], facts["equal"]) == (False, 2, True)


@pytest.mark.slow
def test_a_run_that_differs_is_repeated_with_waves(
    packed: Package,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The host finds a difference where there is none; only the second run has waves."""
    built, run = board.build, board.host.main

    def differ(arguments: list[str]) -> int:
        assert run(arguments) == 0
        return 1

    monkeypatch.setattr(board, "build", lambda *a, **o: built(*a, cache=CACHE, **o))
    monkeypatch.setattr(board.host, "main", differ)
    monkeypatch.chdir(tmp_path)
    options = ["--package", str(packed.folder), "--host", "--no-load", "--images", "1"]
    assert board.main(options) == 1
    shown = capsys.readouterr().err
    assert shown.count("the same again with waves, to build/waves/board.fst\n") == 1
    assert (tmp_path / "build" / "waves" / "board.fst").stat().st_size > 10_000
