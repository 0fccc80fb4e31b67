"""Images per second as a host sees them: an estimate, from bytes, rate, latency and cycles.

`Traffic` says how host and core share the line. `traffic` counts what `Device.run` sends and waits
for, without a line, or what `lbq_hw.host.door` sends.
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
from lbq_hw.host.door import Pace, requests
from lbq_hw.host.meter import Meter
from lbq_hw.host.rates import possible
from lbq_hw.isa.door import Opening
from lbq_hw.isa.link import BYTE_BITS
from lbq_hw.network import Network

LATENCY = 0.001
"""Seconds that a bridge of which nothing is known may keep an answer, as most do at best."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What an image costs on the line: its `bytes`, which go one after the other, frames, escapes
    and idle ones included, and its `turns`, the answers without which the host does not go on.

    Where line and core are `overlapped`, the slower of the two decides; else they take turns.
    """

    bytes: int
    turns: int
    overlapped: bool = False


@dataclass(frozen=True, kw_only=True)
class Line:
    """A serial line: its rate, and the seconds for which the USB bridge may keep an answer."""

    baud: int
    latency: float

    def busy(self, traffic: Traffic) -> float:
        """Seconds of an image on the line."""
        return BYTE_BITS * traffic.bytes / self.baud + traffic.turns * self.latency

    def pace(self, opening: Opening | None, *, clock_hz: int, cycles: float | None) -> Pace | None:
        """That of a core's door, if it has one; `cycles`: those of a run."""
        if opening is None:
            return None
        return Pace(opening=opening, clock_hz=clock_hz, baud=self.baud, cycles=cycles)

    def seconds(self, traffic: Traffic, core_seconds: float) -> float:
        """Seconds from image to image, as the host sees them; the core computes `core_seconds`."""
        on_line = self.busy(traffic)
        return max(on_line, core_seconds) if traffic.overlapped else on_line + core_seconds


def best_line(
    rates: Sequence[int], *, clock_hz: int, baud: int, latency: float | None = None
) -> Line:
    """The line at the highest of a bridge's rates that the core can have; `baud`: at its reset."""
    fastest = possible(rates, clock_hz=clock_hz, baud=baud)[0]
    return Line(baud=fastest, latency=LATENCY if latency is None else latency)


def traffic(
    program: Program, raw: NDArray[np.uint8] | None = None, *, pace: Pace | None = None
) -> Traffic:
    """What an image costs; of a `raw` one with the escapes in it, else of a black one.

    Repeats, further looks at whether the core is done and pauses of the host come on top. At the
    `pace` of a door, the pixels travel once, and a read of the result follows.
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
        overlapped = pace.streams or pace.opening.queue > 0
        return Traffic(bytes=count, turns=int(not overlapped), overlapped=overlapped)
    meter = Meter(program.config)
    device = Device(meter, program, most=(0,))
    before = meter.count + meter.escapes, meter.turns
    device.run(raw)
    return Traffic(bytes=meter.count + meter.escapes - before[0], turns=meter.turns - before[1])


def expected_traffic(network: Network, config: CoreConfig, *, pace: Pace | None = None) -> Traffic:
    """The same of a network for which no program has been made yet."""
    return traffic(Program.of(draft(network, config), config, b""), pace=pace)
