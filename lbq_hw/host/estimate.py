"""Estimated images per second as a host sees them, from bytes, rate, latency and cycles.

`Traffic` describes an image's use of the line. `traffic` computes it without a line, by counting
what `Device.run` or `lbq_hw.host.door` sends and waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lbq_hw.compiler import Program
from lbq_hw.compiler.draft import draft
from lbq_hw.config import CoreConfig
from lbq_hw.host.device import Device
from lbq_hw.host.door import AHEAD, Pace, reply_bytes, requests
from lbq_hw.host.meter import Meter
from lbq_hw.host.rates import possible
from lbq_hw.isa.door import Opening
from lbq_hw.isa.link import BYTE_BITS
from lbq_hw.network import Network

LATENCY = 0.001
"""Seconds for which an unknown bridge is assumed to hold back an answer: the best of most bridges.
"""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Use of the line by one image: its `bytes`, including frame heads, escapes and idle bytes, and
    its `turns`, the number of answers that the host waits for; a half if it waits for one answer
    while two images are under way.

    If line and core take turns, `gap` is None and their times add up. If they work at the same
    time, the slower of the two decides, and the core waits for `gap` seconds between two runs.
    """

    bytes: int
    turns: float
    gap: float | None = None


@dataclass(frozen=True, kw_only=True)
class Line:
    """A serial line: its rate, and the seconds for which the USB bridge may hold back an answer."""

    baud: int
    latency: float

    def busy(self, traffic: Traffic) -> float:
        """Seconds of an image on the line."""
        return BYTE_BITS * traffic.bytes / self.baud + traffic.turns * self.latency

    def pace(self, opening: Opening | None, *, clock_hz: int, cycles: float | None) -> Pace | None:
        """The pace of a core's door, if the core has one; `cycles` of a run."""
        if opening is None:
            return None
        return Pace(opening=opening, clock_hz=clock_hz, baud=self.baud, cycles=cycles)

    def seconds(self, traffic: Traffic, core_seconds: float) -> float:
        """Seconds from image to image, as the host sees them; the core computes `core_seconds`."""
        on_line = self.busy(traffic)
        if traffic.gap is None:
            return on_line + core_seconds
        return max(on_line, core_seconds + traffic.gap)


def best_line(
    rates: Sequence[int], *, clock_hz: int, baud: int, latency: float | None = None
) -> Line:
    """The line at the highest of a bridge's rates that the core can have; `baud`: at its reset."""
    fastest = possible(rates, clock_hz=clock_hz, baud=baud)[0]
    return Line(baud=fastest, latency=LATENCY if latency is None else latency)


def traffic(
    program: Program, raw: NDArray[np.uint8] | None = None, *, pace: Pace | None = None
) -> Traffic:
    """The traffic of an image: of the image `raw` with its escapes, or of a black image.

    Repeats, further polls of the status register and pauses of the host are not included. At the
    `pace` of a door, the pixels travel once, followed by a read of the result.
    """
    if raw is None:
        frames = () if program.input.static else (program.timesteps,)
        raw = np.zeros((*frames, *program.input.shape), np.uint8)
    if pace is not None:
        sent = requests(pace.opening, program.pixel_words(raw))
        count = sum(len(request.encode()) for request in sent)
        count += sum(
            pace.idle(*each) for each in pairwise([sent[-1], *sent] if pace.streams else sent)
        )
        if pace.streams:
            return Traffic(bytes=count, turns=0, gap=0.0)
        if pace.opening.queue:
            return Traffic(bytes=count, turns=1 / AHEAD, gap=pace.gap)
        return Traffic(bytes=count + reply_bytes(sent[-1]), turns=1)
    meter = Meter(program.config)
    device = Device(meter, program, most=(0,))
    before = meter.count + meter.escapes, meter.turns
    device.run(raw)
    return Traffic(bytes=meter.count + meter.escapes - before[0], turns=meter.turns - before[1])


def expected_traffic(network: Network, config: CoreConfig, *, pace: Pace | None = None) -> Traffic:
    """The traffic of an image for a network that has not been compiled yet."""
    return traffic(Program.of(draft(network, config), config, b""), pace=pace)
