"""Latencies that differ between profiles, in one table that all blocks read.

`lbq_hw.cycles` has its own copy of the numbers, and a test compares the two.
"""

from dataclasses import dataclass, replace

from lbq_hw.config import CoreConfig, Profile

__all__ = ["TAPE", "TIMINGS", "Timing", "timing"]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Latencies from block to block in cycles, and counts of the registers that only split long
    wires.
    """

    plane_read: int = 1
    """Cycles from the address of a plane word to its bits."""
    plane_write: int = 0
    """Registers from the writer, and from the host, to the plane memory."""
    flag_write: int = 2
    """Cycles from a write of a plane word to a summary read that sees its flag."""
    event: int = 8
    """Cycles from a request to its first event at the scanner's output."""
    weight_read: int = 1
    """Cycles from an event to its weights."""
    record_read: int = 0
    """Registers behind the tables of layers and paths."""
    slot_free: int = 0
    """Registers from the release of a step's slot to the walker that waits for it."""
    stray: int = 0
    """Registers from the check for weight rows that do not exist to the blocks that it stops."""
    host_write: int = 0
    """Registers from the host's port to the memories that it writes."""
    host_ask: int = 0
    """Registers on the read address, from the host's port to the memories."""
    host_answer: int = 0
    """Registers on the read data, from the memories back to the port."""
    reply: int = 0
    """Registers in `Link` from the state machine of a reply to its bytes."""


TIMINGS = {
    Profile.COMPACT: Timing(),
    Profile.STANDARD: Timing(host_write=1),
    Profile.SPREAD: Timing(
        plane_read=4,
        plane_write=1,
        flag_write=3,
        event=16,
        weight_read=3,
        host_write=1,
        host_ask=1,
        host_answer=1,
    ),
}
TAPE = replace(
    TIMINGS[Profile.SPREAD],
    weight_read=2,
    record_read=1,
    slot_free=1,
    stray=1,
    host_write=0,
    reply=1,
)
"""Latencies of a spread core with external memory, whose host writes only planes."""


def timing(config: CoreConfig) -> Timing:
    """The latencies of a core."""
    return TAPE if config.external else TIMINGS[config.profile]
