"""Contracts of blocks, which simulation checks."""

from amaranth.hdl import Assert

__all__ = ["UNCHECKED", "at_most_one", "checked", "must"]

UNCHECKED = object()
"""A platform for which contracts are not checked, for a block that is synthesised alone."""


def checked(platform) -> bool:
    """Whether contracts are checked: without a platform, or on one with the attribute ``checks``.

    Platforms of boards do not have it, so a contract uses no cell in a bitstream.
    """
    return platform is None or getattr(platform, "checks", False)


def must(m, platform, holds, said: str) -> None:
    """Ends a simulation with the message `said` at the first clock edge at which `holds` is 0."""
    if checked(platform):
        m.d.sync += Assert(holds, said)


def at_most_one(bits):
    """Whether at most one bit is set."""
    return (bits & (bits - 1)) == 0
