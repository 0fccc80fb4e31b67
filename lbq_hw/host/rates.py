"""Finds the highest rate that both the bridge and the core support, and verifies it with data."""

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
"""Stands for a rate: agree on the highest."""
WORDS = 240
"""Words that are sent and read back to try a rate: four frames each way."""


def possible(rates: Sequence[int], *, clock_hz: int, baud: int) -> list[int]:
    """The bridge's rates above `baud` to which the core's clock can be divided, and `baud` itself.

    Highest first; `baud` is the core's rate after a reset.
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
    """The line to a package's board, at a requested rate, or at the highest rate that works.

    Without `baud`, the rate that worked last is used at once. A new rate is verified by sending
    data and reading them back; if they differ, the next lower rate is tried. The rate that worked
    is remembered for the board and its port; after repeated frames or silence, the next lower rate
    is remembered instead. At the end the core is set back to its rate after a reset.
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
    """Whether words can be written and read back at a rate, without a repeat.

    They are written to the place of the input, before any input is written.
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
    """Context that always sets the core back to its rate after a reset."""
    try:
        yield
    finally:
        if line.baud != packed.baud:
            with suppress(LinkError):  # the line is gone; the next host brings the core back
                line.set_rate(packed.baud, clock_hz=packed.clock_hz)
