"""The rate of the line: the highest that the bridge and the core both can do, verified by data."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from lbq_hw.host.line import LinkError, SerialTransport, SilenceError
from lbq_hw.host.remembered import Remembered
from lbq_hw.isa import link, regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region
from lbq_hw.package import Package

AUTO = "auto"
"""In the place of a rate: agree on the highest."""
WORDS = 240
"""Words that go through the line and back at a rate that is tried: four frames each way."""


def possible(rates: Sequence[int], *, clock_hz: int, baud: int) -> list[int]:
    """Of a bridge's rates those above `baud` that a core's clock can be divided to, and `baud`.

    Highest first; `baud` is the core's own after a reset.
    """
    found = []
    for rate in rates:
        with suppress(ValueError):
            link.divisor(clock_hz=clock_hz, baud=rate)
            found += [rate] if rate > baud else []
    return [*sorted(found, reverse=True), baud]


@contextmanager
def opened(
    packed: Package,
    port: str,
    *,
    baud: int | None = None,
    timeout: float = 1.0,
    memory: Remembered | None = None,
) -> Iterator[SerialTransport]:
    """The line to a package's board, at a rate that was asked for, or at the highest that works.

    Without `baud`, the rate that worked last is taken at once. A rate that is new is verified by
    data, and the next lower one is tried where these do not come back as they were. What worked is
    remembered for the board and its port; after repeated frames or silence, the next lower rate. At
    the end the core has the rate of its reset again.
    """
    if baud is not None:
        with SerialTransport.open(port, baud=packed.baud, timeout=timeout) as line:
            if baud != packed.baud:
                line.set_rate(baud, clock_hz=packed.clock_hz)
            with _returned(line, packed):
                yield line
        return
    memory = memory or Remembered()
    rates = possible(packed.rates, clock_hz=packed.clock_hz, baud=packed.baud)
    known = memory.get(packed.board, port)
    rates = rates[rates.index(known) :] if known in rates else rates
    first = rates[0] if known in rates[:-1] else None
    with SerialTransport.open(port, baud=packed.baud, timeout=timeout, first=first) as line:
        if line.baud == packed.baud:
            agree(line, packed, rates)
        rate, before, silent = line.baud, line.repeats, False
        try:
            with _returned(line, packed):
                yield line
        except SilenceError:
            silent = True
            raise
        finally:
            if len(rates) > 1 and not line.simulated:
                down = silent or line.repeats > before
                memory.put(packed.board, port, rates[min(rates.index(rate) + down, len(rates) - 1)])


def agree(line: SerialTransport, packed: Package, rates: Sequence[int]) -> None:
    """Bring a line to the first of `rates` at which data come back; the last is the package's."""
    for rate in rates[:-1]:
        if _works(line, packed, rate):
            return
        line.begin_again(packed.baud)


def _works(line: SerialTransport, packed: Package, rate: int) -> bool:
    """Whether words come through the line and back at a rate, without a repeat.

    They are written where the input goes, before there is one.
    """
    source, config = random.Random(rate), packed.config
    base = Region.PLANES << regions.SHIFT
    count = min(WORDS, config.plane_words * regions.slices(config)[Region.PLANES])
    words = [source.getrandbits(min(SLICE, config.word)) for _ in range(count)]
    with suppress(LinkError, ValueError), line.hurried():  # no answer, or a port without that rate
        line.set_rate(rate, clock_hz=packed.clock_hz)
        line.write(base, words)
        return line.read(base, count) == words
    return False


@contextmanager
def _returned(line: SerialTransport, packed: Package) -> Iterator[None]:
    """At the end, whatever happens, the core has the rate of its reset."""
    try:
        yield
    finally:
        if line.baud != packed.baud:
            with suppress(LinkError):  # of a line that is gone; the next host brings the core back
                line.set_rate(packed.baud, clock_hz=packed.clock_hz)
