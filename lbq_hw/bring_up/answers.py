"""The steps after the load: does the core answer, and are its answers right?"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np

from lbq_hw import units
from lbq_hw.bring_up.plug import PAGE
from lbq_hw.bring_up.walk import Finding, Visit, failed, ok, skipped
from lbq_hw.host import LinkError, SerialTransport
from lbq_hw.host.results import spoken_captures
from lbq_hw.host.transport import DeviceError
from lbq_hw.isa import link as frames
from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

RATES = (1_000_000, 3_000_000)
"""Rates in baud that are tried if they are faster than the board's rate."""
WORDS, ROUNDS = 256, 4
"""Words that are written and read back at each rate, and how often."""
_SLOWER = "build the package again with a lower --freq"


def link(visit: Visit) -> Finding:
    """Does the core of the package answer?"""
    try:
        with visit.device() as (line, device):
            repeats = line.repeats
            baked = line.baked() == device.tag
    except DeviceError as error:
        return failed(
            str(error),
            f"load the bitstream of this package again; if that does not help, see {PAGE}: the "
            "light, the USB bridge, and what to do when nothing answers",
            port=visit.port,
        )
    where = "its network is in the bitstream" if baked else "its network is uploaded"
    return ok(
        f"{visit.port}: a core with config {visit.packed.config.digest[:8]} at "
        f"{visit.packed.baud:,} baud, {where}",
        port=visit.port,
        config=visit.packed.config.digest,
        repeated_frames=repeats,
    )


def memory(visit: Visit) -> Finding:
    """Does the external memory keep its contents?"""
    if not visit.packed.config.external:
        return skipped("the core has no external memory")
    try:
        with visit.device() as (line, device):
            captures = device.recalibrate().facts()
            began = line.now()
            differing = device.memory().test()
            device.check()
            seconds = line.now() - began
    except DeviceError as error:
        return failed(str(error), f"power the board off and on; if that does not help, {_SLOWER}")
    facts = {"differing_words": differing, "seconds": seconds, "captures": captures}
    said = f"captures {spoken_captures(captures)}"
    if differing:
        text = f"{differing} words differ from what was written, {said}"
        return failed(text, _SLOWER, **facts)
    return ok(f"no word differs, {said}, {units.seconds(seconds)}", **facts)


def selftest(visit: Visit) -> Finding:
    """Are the logits of the package's own inputs right?"""
    test = visit.packed.selftest
    if test is None:
        return skipped("the package has no self-test: build it again")
    try:
        with visit.device() as (line, device):
            if device.config.external or line.baked() != device.tag:
                device.load()
            logits = np.array([device.run(image) for image in test.images])
            cycles = device.counters().cycles
            repeats = line.repeats
    except DeviceError as error:
        return failed(str(error), f"load the bitstream again; if that does not help, {_SLOWER}")
    differing = np.flatnonzero((logits != test.logits).any(axis=1)).tolist()
    facts = {"inputs": len(logits), "differing": differing, "cycles": cycles}
    facts |= {"repeated_frames": repeats}
    if differing:
        text = f"{len(differing)} of {len(logits)} inputs give wrong logits"
        return failed(text, f"{_SLOWER}, and send the report of this command", **facts)
    return ok(
        f"{len(logits)} inputs, all logits equal, {cycles:,} cycles "
        f"({units.seconds(cycles / visit.packed.clock_hz)})",
        **facts,
    )


def rate(visit: Visit) -> Finding:
    """How fast is the line, and does it work at other rates?"""
    baud = visit.packed.baud
    facts: dict[str, Any] = {"baud": baud}
    try:
        with visit.line() as line:
            facts |= _through(line, visit)
        if not facts["equal"] or facts["repeated_frames"]:
            text = f"at {baud:,} baud, {facts['repeated_frames']} frames were repeated"
            if not facts["equal"]:
                text = f"at {baud:,} baud, words that were written came back changed"
            return failed(
                text, f"take another cable and no hub, and see {PAGE}, the USB bridge", **facts
            )
        facts["rates"] = rates = {str(other): _works(visit, other) for other in _others(visit)}
    except DeviceError as error:
        return failed(str(error), "load the bitstream again", **facts)
    said = "".join(
        f"; --baud {int(other)} {'works too' if works else 'does not work'}"
        for other, works in rates.items()
    )
    per_second = units.si(facts["bytes_per_second"])
    return ok(f"{baud:,} baud, {per_second}B/s, no frame repeated{said}", **facts)


def _others(visit: Visit) -> list[int]:
    """Faster rates that the core's clock can be divided to."""
    found = []
    for baud in RATES:
        with suppress(ValueError):
            frames.divisor(clock_hz=visit.packed.clock_hz, baud=baud)
            found += [baud] if baud > visit.packed.baud else []
    return found


def _works(visit: Visit, baud: int) -> bool:
    """Whether the line works at another rate; afterwards it has the package's rate again."""
    packed = visit.packed
    with suppress(LinkError, ValueError), visit.line(timeout=visit.timeout / 5) as line:
        line.set_rate(baud, clock_hz=packed.clock_hz)
        found = _through(line, visit)
        line.set_rate(packed.baud, clock_hz=packed.clock_hz)
        return bool(found["equal"]) and not found["repeated_frames"]
    with visit.line():  # brings the core back to the package's rate
        return False


def _through(line: SerialTransport, visit: Visit) -> dict[str, Any]:
    """Send words through the line and back: whether they are equal, repeats, bytes per second."""
    source = random.Random(1)
    base, config = Region.PLANES << regions.SHIFT, visit.packed.config
    count = min(WORDS, config.plane_words * regions.slices(config)[Region.PLANES])
    bits = min(SLICE, config.word)  # bits of each word that the core keeps
    before, began, equal = line.repeats, line.now(), True
    for _ in range(ROUNDS):
        words = [source.getrandbits(bits) for _ in range(count)]
        line.write(base, words)
        equal &= line.read(base, count) == words
    seconds = line.now() - began
    return {
        "equal": equal,
        "repeated_frames": line.repeats - before,
        "bytes_per_second": 8 * count * ROUNDS / seconds if seconds > 0 else 0.0,
    }
