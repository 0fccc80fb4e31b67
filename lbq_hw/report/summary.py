"""The most important numbers, computed from the parts, for ``summary.json``."""

from __future__ import annotations

from typing import Any

from lbq_hw.report.facts import Facts

HEADLINE = ("integer", "lbq")  # the price list and execution of the headline's energy


def summary(facts: Facts) -> dict[str, Any]:
    """One JSON-able object; None where a part is missing.

    `seconds_per_image` and `images_per_second_core` are for the core alone, from cycles and the
    board's clock. `images_per_second` is the rate that a host sees, with `link_seconds_per_image`
    on the line at `baud`, the highest rate of the board, if each turn costs the latency of the USB
    bridge: an estimate. Keys that end in `_estimate` are estimates too.
    """
    clock = facts.board.clock_hz if facts.board else None
    seconds = facts.cycles.cycles / clock if facts.cycles and clock else None
    link = facts.link
    slowest = facts.timing.slowest if facts.timing else None
    return {
        "model": facts.model.name if facts.model else None,
        "accuracy": facts.model.accuracy if facts.model else None,
        "accuracy_split": facts.model.accuracy_split if facts.model else None,
        "board": facts.board.name if facts.board else None,
        "lanes": facts.core.config.lanes if facts.core else None,
        "fits": fits(facts),
        "timing_met": facts.timing.met if facts.timing else None,
        "fmax_hz": slowest.fmax_hz if slowest else None,
        "clock_hz": clock,
        "cycles": facts.cycles.cycles if facts.cycles else None,
        "utilisation": facts.cycles.utilisation if facts.cycles else None,
        "seconds_per_image": seconds,
        "link_seconds_per_image": link.seconds if link else None,
        "link_bytes_per_image": link.bytes if link else None,
        "link_turns_per_image": link.turns if link else None,
        "link_latency_seconds": link.latency if link else None,
        "link_gap_seconds": link.gap if link else None,
        "baud": link.baud if link else None,
        "images_per_second": 1 / link.image_seconds(seconds) if seconds and link else None,
        "images_per_second_core": 1 / seconds if seconds else None,
        "bit_exact": facts.simulation.bit_exact if facts.simulation else None,
        "energy_mj_estimate": energy_mj(facts),
        "resources": {r.kind: r.used for r in facts.resources} if facts.resources else None,
    }


def fits(facts: Facts) -> bool | None:
    """Whether the placed design fits the board; before placement, whether the estimate fits."""
    if facts.resources is not None:
        return all(resource.used <= resource.available for resource in facts.resources)
    return facts.fit.fits if facts.fit else None


def energy_mj(facts: Facts) -> float | None:
    """Arithmetic energy of an image by the headline's price list: an estimate."""
    entries = facts.operations.energy if facts.operations else ()
    found = (entry.mj for entry in entries if (entry.prices, entry.execution) == HEADLINE)
    return next(found, None)
