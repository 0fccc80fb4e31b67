from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from link_model import Model

from lbq_hw.host.line import ATTEMPTS, LinkError, SerialTransport
from lbq_hw.host.transport import DeviceError
from lbq_hw.isa import regions

Noise = Callable[[bytes], bytes]


class Wire:
    """A port with the link's model at its other end, and noise in both directions."""

    def __init__(self, noise: Noise = bytes) -> None:
        self.model = Model()
        self.noise = noise
        self.waiting = b""
        self.sent = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self.sent += len(data)
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
        f"the core does not answer ({ATTEMPTS} attempts): see that it is powered, has its "
        "bitstream, and that port and baud are right"
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
    # last, the line must be silent for a quarter of one, which the next look finds.
    assert ticks.seconds == (15 + 5 / 4) * timeout + (6 * 2 + 5) * ticks.STEP


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
        LinkError, match=r"^the core has been reset or has another host: start again$"
    ):
        line.read(0, 1)


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
