"""The bytes of an image on the line, against those that the host really sends and gets."""

from __future__ import annotations

import pytest
from host.test_line import Wire
from networks import random_images, random_network

from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.host.device import Device
from lbq_hw.host.frames import unwrap
from lbq_hw.host.line import SerialTransport
from lbq_hw.host.meter import bytes_per_image
from lbq_hw.isa import regions


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
    assert bytes_per_image(program) == sum(sent) + sum(got) - overlapping
