"""Images per second as a host sees them: an estimate, from bytes, rate, latency and cycles.

`Traffic` says how host and core share the line. `traffic` counts what `Device.run` sends and waits
for, without a line, or what `lbq_hw.host.door` sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbq_hw.compiler import Program
from lbq_hw.compiler.draft import draft
from lbq_hw.config import CoreConfig
from lbq_hw.host.device import Device
from lbq_hw.host.door import FRAME_BYTES, SPARE
from lbq_hw.host.frames import STUFFED, cuts
from lbq_hw.host.meter import Meter
from lbq_hw.host.rates import possible
from lbq_hw.isa.door import Opening
from lbq_hw.isa.link import BYTE_BITS
from lbq_hw.network import Network

LATENCY = 0.001
"""Seconds that a bridge of which nothing is known may keep an answer, as most do at best."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What an image costs on the line: its `bytes`, which go one after the other, frames and
    escapes included, and its `turns`, the answers without which the host does not go on.

    Through a core's `door`, inputs follow each other while the line is slower than the core, and
    the slower of the two decides; with a `queue` behind it, always. Else line and core take turns.
    """

    bytes: int
    turns: int
    door: bool = False
    queue: bool = False


@dataclass(frozen=True, kw_only=True)
class Line:
    """A serial line: its rate, and the seconds for which the USB bridge may keep an answer."""

    baud: int
    latency: float

    def busy(self, traffic: Traffic) -> float:
        """Seconds of an image on the line."""
        return BYTE_BITS * traffic.bytes / self.baud + traffic.turns * self.latency

    def seconds(self, traffic: Traffic, core_seconds: float) -> float:
        """Seconds from image to image, as the host sees them; the core computes `core_seconds`."""
        on_line = self.busy(traffic)
        if traffic.queue or (traffic.door and on_line > SPARE * core_seconds):
            return max(on_line, core_seconds)
        return on_line + core_seconds + (self.latency if traffic.door else 0)


def best_line(
    rates: Sequence[int], *, clock_hz: int, baud: int, latency: float | None = None
) -> Line:
    """The line at the highest of a bridge's rates that the core can have; `baud`: at its reset."""
    fastest = possible(rates, clock_hz=clock_hz, baud=baud)[0]
    return Line(baud=fastest, latency=LATENCY if latency is None else latency)


def traffic(
    program: Program, raw: NDArray[np.uint8] | None = None, *, opening: Opening | None = None
) -> Traffic:
    """What an image costs; of a `raw` one with the escapes in it, else the fewest bytes.

    Repeats, further looks at whether the core is done and pauses of the host come on top. With an
    `opening`, the pixels travel once, and a read of the result follows; answers come beside them.
    """
    if raw is None:
        frames = () if program.input.static else (program.timesteps,)
        raw = np.zeros((*frames, *program.input.shape), np.uint8)
    if opening is not None:
        words = program.pixel_words(raw)
        data = words.astype("<u4").tobytes()
        sent = len(data) + (len(cuts(0, len(words))) + 1) * FRAME_BYTES
        escapes = sum(data.count(byte) for byte in STUFFED)
        return Traffic(bytes=sent + escapes, turns=0, door=True, queue=opening.queue > 0)
    meter = Meter(program.config)
    device = Device(meter, program, most=(0,))
    before = meter.count + meter.escapes, meter.turns
    device.run(raw)
    return Traffic(bytes=meter.count + meter.escapes - before[0], turns=meter.turns - before[1])


def expected_traffic(
    network: Network, config: CoreConfig, *, opening: Opening | None = None
) -> Traffic:
    """The same of a network for which no program has been made yet."""
    return traffic(Program.of(draft(network, config), config, b""), opening=opening)
