"""The bytes of an image on the line, against those that the host really sends and gets."""

from __future__ import annotations

import numpy as np
import pytest
from host.test_line import Wire

from lbq_hw import file, zoo
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.datasets.fitting import noise
from lbq_hw.host.device import Device
from lbq_hw.host.door import Pace, requests
from lbq_hw.host.estimate import Line, Traffic, best_line, expected_traffic, traffic
from lbq_hw.host.frames import unwrap
from lbq_hw.host.line import SerialTransport
from lbq_hw.isa import regions
from lbq_hw.isa.door import Opening
from lbq_hw.sim.drawn.networks import random_images, random_network


class IdleWire(Wire):
    """The model of a link to a core that is never busy and whose logits are 0."""

    def __init__(self, digest: str) -> None:
        super().__init__()
        for register in regions.REGISTERS.values():
            self.model.memory[register.address] = 0
        self.model.memory[0] = regions.MAGIC
        self.model.memory[1] = int(digest[:8], 16)


def plain(stream: bytes) -> list[int]:
    """Bytes of each frame without escapes, CRC and flag included."""
    bodies = [unwrap(body) for body in stream.split(b"\x7e") if body]
    return [len(body) + 5 for body in bodies if body is not None]


@pytest.mark.parametrize("seed", range(6))
def test_an_image_takes_the_bytes_that_are_counted(seed: int) -> None:
    network = random_network(seed)
    program = compile_network(network, smallest_for(network, lanes=4, word=64 if seed % 2 else 16))
    wire = IdleWire(program.config.digest)
    device = Device(SerialTransport(wire), program)
    requests, answers = len(wire.model.accepted), len(wire.model.sent)
    device.run(random_images(network, 1, seed)[0])
    sent = [len(body) + 5 for body in wire.model.accepted[requests:]]
    got = plain(wire.model.sent[answers:])
    assert len(sent) == len(got)
    frames = sum(size > 11 for size in sent) - 2  # of the input: not the two of the register
    assert frames >= 1
    overlapping = 7 * (frames - 1)  # answers to all of them but the last
    found = traffic(program)
    assert found.bytes == sum(sent) + sum(got) - overlapping
    assert found.turns == len(sent) - (frames - 1)
    assert expected_traffic(network, program.config) == found


def test_escapes_of_an_input_are_counted() -> None:
    network = file.load(zoo.find("mnist-4bit"))
    program = compile_network(network, smallest_for(network))
    raw = noise(network, 1)[0]
    words = program.load_image(raw).tobytes()
    escapes = sum(words.count(byte) for byte in (0x7D, 0x7E, 0x18))
    assert escapes > 0
    assert traffic(program, raw).bytes == traffic(program).bytes + escapes


def test_line_and_core_take_turns_or_overlap() -> None:
    line = Line(baud=1_000_000, latency=0.5)
    turns = Traffic(bytes=100_000, turns=3)
    both = Traffic(bytes=100_000, turns=0, gap=0.25)
    assert (line.busy(turns), line.busy(both)) == (2.5, 1.0)
    assert line.seconds(turns, 4.0) == 6.5
    assert (line.seconds(both, 4.0), line.seconds(both, 0.5)) == (4.25, 1.0)


def test_through_a_door_pixels_travel_once() -> None:
    network = file.load(zoo.find("mnist-4bit"))
    program = compile_network(network, smallest_for(network))
    queued = Opening(pixels=program.pixels, results=10, queue=program.pixels.words + 1)
    pace = Pace(opening=queued, clock_hz=33_000_000, baud=3_000_000, cycles=7_000)
    bits = program.input.bits * 28 * 28
    words = -(-bits // 32)
    frames = -(-words // 60) + 1  # and the read of the result
    # Its last frame is short: the read behind it waits for its words to be taken.
    count = words % 60
    idle = -(-(7 * 110 + 8 * (4 * count + 11) + 7 * count) // 110) - 11 + 1
    assert idle > 0
    black = program.pixel_words(np.zeros((1, 28, 28), np.uint8))
    wire = b"".join(request.encode() for request in requests(queued, black))
    assert sum(plain(wire)) == 4 * words + 11 * frames  # without escapes
    assert traffic(program, pace=pace) == Traffic(bytes=len(wire) + idle, turns=0, gap=0.0)


@pytest.mark.parametrize(
    ("cycles", "streams"), [(None, False), (3_000, True), (100_000, True), (400_000, False)]
)
def test_without_a_queue_idle_bytes_make_up_for_a_run(cycles: int | None, streams: bool) -> None:
    network = file.load(zoo.find("mnist-4bit"))
    program = compile_network(network, smallest_for(network))
    opening = Opening(pixels=program.pixels, results=10, queue=0)
    pace = Pace(opening=opening, clock_hz=33_000_000, baud=3_000_000, cycles=cycles)
    assert pace.streams == streams
    found = traffic(program, pace=pace)
    assert (found.gap, found.turns) == ((0.0, 0) if streams else (None, 1))
    line = Line(baud=3_000_000, latency=0.0)
    if streams and cycles is not None:
        assert line.busy(found) > 1.25 * cycles / 33_000_000


def test_the_best_line_has_the_highest_rate_that_the_core_can_have() -> None:
    rates = (6_000_000, 3_000_000)
    found = best_line(rates, clock_hz=33_000_000, baud=1_000_000, latency=0.25)
    assert found == Line(baud=3_000_000, latency=0.25)
    assert best_line((), clock_hz=33_000_000, baud=115_200) == Line(baud=115_200, latency=0.001)


def test_a_small_core_with_a_queue_waits_for_its_result_and_the_next_pixels() -> None:
    """The digits of `make demo` on an iCEBreaker: its simulated host sees 3,654 images/s, or 1,952
    with a latency of a millisecond (`sim.seen`).
    """
    network = file.load(zoo.find("digits"))
    program = compile_network(network, smallest_for(network))
    queued = Opening(pixels=program.pixels, results=10, queue=program.pixels.words + 1)
    pace = Pace(opening=queued, clock_hz=30_000_000, baud=6_000_000, cycles=5_000)
    assert not pace.streams
    found = traffic(program, pace=pace)
    answer = (12 * 4 + 7) * 50  # cycles: words, head, CRC and end
    assert found.turns == 1 / 2
    assert found.gap == pytest.approx((answer + program.pixels.run_cycles) / 30e6)
