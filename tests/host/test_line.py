from __future__ import annotations

import io
import math
import os
import random
import re
from collections.abc import Callable

import pytest
import serial
from link_model import Model

from lbq_hw.host.frames import Request, wrap
from lbq_hw.host.line import ATTEMPTS, PAUSE, SLOW, STREAM, Asked, LinkError, SerialTransport
from lbq_hw.host.transport import DeviceError
from lbq_hw.isa import regions
from lbq_hw.isa.link import FLAG, Command, Status

Noise = Callable[[bytes], bytes]


class Wire:
    """A port with the link's model at its other end, and noise in both directions.

    The model understands what has its rate, and goes back to `RESET` when the line is low for
    longer than a byte.
    """

    RESET = 115_200

    def __init__(self, noise: Noise = bytes) -> None:
        self.model = Model()
        self.noise = noise
        self.waiting = b""
        self.sent = 0
        self.closed = False
        self.baudrate = self.rate = self.RESET

    def write(self, data: bytes) -> int:
        self.sent += len(data)
        if self.baudrate != self.rate:
            if 0 in data and 9 / self.baudrate >= 10 / self.rate:
                self.rate = self.RESET
            return len(data)
        before = len(self.model.sent)
        self.model.take(self.noise(data))
        self.waiting += self.noise(self.model.sent[before:])
        return len(data)

    def read(self, size: int = 1) -> bytes:
        data, self.waiting = self.waiting[:size], self.waiting[size:]
        return data

    @property
    def in_waiting(self) -> int:
        return len(self.waiting)

    def close(self) -> None:
        self.closed = True


def noisy(seed: int, rate: float) -> Noise:
    """Flips, drops, doubles and inserts bytes."""
    source = random.Random(seed)

    def noise(data: bytes) -> bytes:
        out = bytearray()
        for byte in data:
            if source.random() >= rate:
                out.append(byte)
                continue
            out += source.choice(
                (bytes((byte ^ 1 << source.randrange(8),)), b"", bytes((byte, byte)),
                 bytes((source.randrange(256), byte)))
            )  # fmt: skip
        return bytes(out)

    return noise


class Ticks:
    """A clock of its own, in binary fractions of a second, so that sums are exact."""

    STEP = 1 / 1024

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def opened(wire: Wire, timeout: float = 0.002) -> SerialTransport:
    return SerialTransport(wire, timeout=timeout)


def test_words_are_written_and_read_across_frames_and_pages() -> None:
    line = opened(wire := Wire())
    words = list(range(1000, 1400))
    line.write(0x700000F0, words)
    assert wire.model.written == [(0x700000F0 + i, word) for i, word in enumerate(words)]
    assert line.read(0x700000F0, 400) == words
    assert line.read(0x80000000, 2) == [0x80000000, 0x80000001]
    assert line.repeats == 0
    line.write(5, [])
    assert line.read(5, 0) == []


@pytest.mark.parametrize("seed", range(8))
def test_noise_costs_time_and_nothing_else(seed: int) -> None:
    """Every word is written once, in order, and every read is right."""
    wire = Wire()
    line = opened(wire)
    wire.noise = noisy(seed, 0.0003)
    source = random.Random(seed)
    expected: list[tuple[int, int]] = []
    for _ in range(30):
        address = 0x70000000 + source.randrange(4000)
        words = [source.choice((0, 0x7E7E7D7D, 1 << 31)) for _ in range(source.randrange(200))]
        line.write(address, words)
        expected += [(address + i, word) for i, word in enumerate(words)]
        assert line.read(address, len(words)) == words
    assert wire.model.written == expected
    assert line.repeats > 0


def test_a_line_without_an_answer_is_given_up() -> None:
    wire = Wire(lambda _: b"")
    text = (
        f"the core does not answer ({ATTEMPTS} attempts): check that the board is powered "
        "and has its bitstream, and that port and baud are right"
    )
    with pytest.raises(LinkError, match=f"^{re.escape(text)}$"):
        opened(wire)


def test_a_line_is_given_up_after_the_seconds_of_its_own_clock() -> None:
    ticks, timeout = Ticks(), 1 / 8

    class Silent(Wire):
        def read(self, size: int = 1) -> bytes:
            del size
            ticks.seconds += ticks.STEP
            return b""

    with pytest.raises(LinkError, match=r"^the core does not answer \(6 attempts\): "):
        SerialTransport(Silent(), timeout=timeout, clock=ticks)
    # Six waits end with the second look after 1, 2, 3, 3, 3 and 3 time-outs. After each but the
    # last, the line must be silent for a quarter of one, which the next look finds. Before them
    # there are two such waits, and a break, which ends with the first look after 50 ms.
    greetings = (3 + 1 / 4) * timeout + (2 * 2 + 1) * ticks.STEP
    pause = math.ceil(PAUSE / ticks.STEP) * ticks.STEP
    assert ticks.seconds == greetings + pause + (15 + 5 / 4) * timeout + (6 * 2 + 5) * ticks.STEP


def test_a_clock_that_stands_still_costs_no_frame() -> None:
    class Slow(Wire):
        looks = 0

        def read(self, size: int = 1) -> bytes:
            self.looks += 1
            return super().read(size) if self.looks % 1000 == 0 else b""

    line = SerialTransport(Slow(), timeout=1e-9, clock=Ticks())
    line.write(3, [1, 2, 3])
    assert line.read(3, 3) == [1, 2, 3]
    assert line.repeats == 0


def test_an_answer_that_came_in_time_counts_however_late_it_is_read() -> None:
    class Late(Wire):
        """Answers leave byte by byte, the first with the second look at a clock that leaps."""

        held = left = b""
        seconds = 0.0

        def clock(self) -> float:
            self.left += self.held
            self.held, self.waiting = self.waiting, b""
            self.seconds += 1000
            return self.seconds

        def read(self, size: int = 1) -> bytes:
            data, self.left = self.left[:size], self.left[size:]
            return data

    wire = Late()
    line = SerialTransport(wire, timeout=1, clock=wire.clock)
    line.write(0, list(range(300)))
    assert line.read(0, 300) == list(range(300))
    assert line.repeats == 0


def test_a_line_that_never_pauses_is_given_up() -> None:
    ticks = Ticks()

    class Flood(Wire):
        def read(self, size: int = 1) -> bytes:
            del size
            ticks.seconds += ticks.STEP
            return bytes(50)

    with pytest.raises(LinkError, match=r"^the core does not answer \(6 attempts\): "):
        SerialTransport(Flood(), timeout=1 / 8, clock=ticks)


def test_a_simulation_that_is_gone_is_told() -> None:
    alive = True

    def seconds() -> float:
        if not alive:
            raise OSError("Input/output error")
        return 0.0

    line = SerialTransport(Wire(), clock=seconds)
    alive = False
    with pytest.raises(LinkError, match=r"^the port is gone \(Input/output error\)$"):
        line.read(0, 1)


def test_a_line_that_babbles_is_given_up() -> None:
    source = random.Random(1)
    with pytest.raises(LinkError, match=r"^the core does not answer \(6 attempts\): "):
        opened(Wire(lambda _: source.randbytes(50)))


def test_a_core_that_was_reset_is_told() -> None:
    line = opened(wire := Wire())
    line.write(3, [1])
    wire.model.last = None
    with pytest.raises(
        LinkError, match=r"^the core was reset, or another host uses it: start again$"
    ):
        line.read(0, 1)


class Left(Wire):
    """A host went away: answers to it still come, and the core has no room for the first frame."""

    def __init__(self, first: int) -> None:
        super().__init__()
        answers = (bytes(((first + i) % 256, Status.OK)) for i in range(STREAM))
        self.waiting = b"".join(map(wrap, answers))
        self.full = True

    def write(self, data: bytes) -> int:
        if self.full and data != bytes((FLAG,)):
            self.full = False
            return len(data)
        return super().write(data)


@pytest.mark.parametrize("first", range(0, 256, 16))
def test_an_answer_to_an_earlier_host_does_not_begin_a_session(first: int) -> None:
    line = SerialTransport(Left(first), timeout=0.002, sequence=0)
    assert line.read(0x80000000, 2) == [0x80000000, 0x80000001]


def test_an_unplugged_cable_is_told() -> None:
    line = opened(wire := Wire())

    def gone(_: bytes) -> bytes:
        raise OSError("Input/output error")

    wire.noise = gone
    with pytest.raises(DeviceError, match=r"^the port is gone \(Input/output error\)$"):
        line.write(3, [1])


def test_a_port_that_does_not_exist_is_told() -> None:
    with pytest.raises(LinkError, match=r"^the port /dev/none cannot be opened: .*No such file"):
        SerialTransport.open("/dev/none", baud=115200)


def test_a_second_host_on_a_port_is_refused() -> None:
    master, slave = os.openpty()
    name = os.ttyname(slave)
    try:
        with serial.Serial(name, exclusive=True), pytest.raises(LinkError) as told:
            SerialTransport.open(name, baud=115200)
    finally:
        os.close(master)
        os.close(slave)
    assert (
        str(told.value) == f"the port {name} is in use by another program: end that program first"
    )


class Bridge(Wire):
    """A USB bridge; what it does at a break of the port is left to others, who count it."""

    breaks = 0

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")

    def set_low_latency_mode(self, _: bool) -> None:
        raise NotImplementedError

    @property
    def break_condition(self) -> bool:
        return False

    @break_condition.setter
    def break_condition(self, _: bool) -> None:
        self.breaks += 1


class Raises(Bridge):
    """As a pseudo-terminal."""

    @Bridge.break_condition.setter
    def break_condition(self, _: bool) -> None:
        self.breaks += 1
        raise OSError(25, "Inappropriate ioctl for device")


class Resets(Bridge):
    """As DAPLink: the target has lost its bitstream."""

    @Bridge.break_condition.setter
    def break_condition(self, _: bool) -> None:
        self.breaks += 1
        self.noise = lambda _: b""


class Garbles(Bridge):
    """As the bridge of a Tang Nano 9K: from now on it has parity bits."""

    @Bridge.break_condition.setter
    def break_condition(self, _: bool) -> None:
        self.breaks += 1
        self.noise = lambda data: bytes(byte | 0x80 for byte in data)


BRIDGES = [Bridge, Raises, Resets, Garbles]


def plugged(monkeypatch: pytest.MonkeyPatch, bridge: Bridge) -> None:
    monkeypatch.setattr(serial, "Serial", lambda *_, **__: bridge)


@pytest.mark.parametrize("kind", BRIDGES)
def test_a_core_that_answers_is_asked_once_and_gets_no_break(
    kind: type[Bridge], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugged(monkeypatch, bridge := kind())
    with SerialTransport.open("any", baud=Wire.RESET, timeout=0.002) as line:
        assert line.read(3, 2) == [3, 4]
        assert line.repeats == 0
    # A flag, two SYNCs and a READ, in which nothing may be escaped but the numbers and the CRCs.
    assert len(bridge.model.accepted) == 3
    assert bridge.breaks == 0
    assert bridge.closed


@pytest.mark.parametrize("rate", [3_000_000, 1_000_000, 9600, 2931])
@pytest.mark.parametrize("kind", BRIDGES)
def test_a_core_that_was_left_at_another_rate_is_brought_back_without_a_break_of_the_port(
    kind: type[Bridge], rate: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugged(monkeypatch, bridge := kind())
    bridge.rate = rate
    with SerialTransport.open("any", baud=Wire.RESET, timeout=0.002) as line:
        assert line.read(3, 2) == [3, 4]
    assert (bridge.rate, bridge.baudrate, bridge.breaks) == (Wire.RESET, Wire.RESET, 0)


class Fast(Bridge):
    """A port without slow rates; `refusal`: what it raises, or None where it stays as it is."""

    refusal: Exception | None = None

    def __setattr__(self, name: str, value: object) -> None:
        if name == "baudrate" and value == SLOW:
            if self.refusal:
                raise self.refusal
            return
        super().__setattr__(name, value)


@pytest.mark.parametrize("refusal", [None, ValueError("Failed to set custom baud rate (2400)")])
def test_a_core_that_cannot_be_brought_back_is_given_up(
    refusal: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugged(monkeypatch, bridge := Fast())
    bridge.refusal = refusal
    bridge.rate = 9600
    with pytest.raises(LinkError, match=r"^the core does not answer \(6 attempts\): "):
        SerialTransport.open("any", baud=Wire.RESET, timeout=0.002)
    assert bridge.closed
    assert bridge.baudrate == Wire.RESET
    bridge.rate = Wire.RESET
    with SerialTransport.open("any", baud=Wire.RESET) as line:
        assert line.read(3, 1) == [3]


def test_a_port_that_is_gone_when_its_rate_changes_is_told() -> None:
    wire = Fast(lambda _: b"")
    wire.refusal = OSError("Input/output error")
    with pytest.raises(LinkError, match=r"^the port is gone \(Input/output error\)$"):
        opened(wire)


def test_waiting_ends_with_the_run_or_at_the_limit() -> None:
    line = opened(wire := Wire())
    status, low = (regions.REGISTERS[name].address for name in ("status", "cycles"))
    wire.model.memory |= {status: 1, low: 99, low + 1: 1}
    assert not line.wait((1 << 32) + 99)
    reads = iter((1, 1, 1, 2))
    take = wire.model.take

    def run(data: bytes) -> None:
        wire.model.memory[status] = next(reads)
        take(data)

    wire.model.take = run  # pyright: ignore[reportAttributeAccessIssue]
    assert line.wait((1 << 32) + 100)
    assert next(reads, None) is None


def test_the_port_is_given_back() -> None:
    with opened(wire := Wire()):
        assert not wire.closed
    assert wire.closed


@pytest.mark.parametrize("longest", [0.0, 3.0])
def test_a_stream_waits_for_what_takes_the_core_long(longest: float) -> None:
    ticks = Ticks()

    class Long(Wire):
        """No answer is there before `due`."""

        due = 0.0

        def read(self, size: int = 1) -> bytes:
            ticks.seconds += 1 / 64
            return super().read(size) if ticks.seconds >= self.due else b""

    line = SerialTransport(wire := Long(), timeout=1 / 2, clock=ticks)
    wire.due = ticks.seconds + 2
    asked = Asked(request=Request(sequence=0, command=Command.READ, address=7, words=1))
    assert list(line.stream([asked], longest=longest)) == [(7,)]
    assert (line.repeats == 0) == (longest > 2)
