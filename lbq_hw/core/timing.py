"""Latencies that differ between profiles: one table, from which the blocks take theirs.

`lbq_hw.cycles` has numbers of its own, and a test compares the two.
"""

from dataclasses import dataclass

from lbq_hw.config import CoreConfig, Profile

__all__ = ["TIMINGS", "Timing", "timing"]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Cycles, counted from a value at one block to what another makes of it."""

    plane_read: int
    """From the address of a plane word to its bits."""
    plane_write: int
    """Registers on the way from the writer, and from the host, to the plane memory."""
    flag_write: int
    """From a write of a plane word to a summary read that sees its flag."""
    event: int
    """From a request to the first event that the scanner makes of it."""


TIMINGS = {
    Profile.COMPACT: Timing(plane_read=1, plane_write=0, flag_write=2, event=8),
    Profile.STANDARD: Timing(plane_read=1, plane_write=0, flag_write=2, event=8),
    Profile.SPREAD: Timing(plane_read=4, plane_write=1, flag_write=3, event=16),
}


def timing(config: CoreConfig) -> Timing:
    """The latencies of a core."""
    return TIMINGS[config.profile]
