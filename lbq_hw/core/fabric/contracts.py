"""Contracts of blocks, which simulation checks."""

from amaranth.hdl import Assert

__all__ = ["UNCHECKED", "at_most_one", "checked", "must"]

UNCHECKED = object()
"""A platform without contracts, for a block that is synthesised alone."""


def checked(platform) -> bool:
    """Whether contracts are checked: without a platform, and on one that says so by ``checks``.

    The platform of a board does not: there a contract takes no cell.
    """
    return platform is None or getattr(platform, "checks", False)


def must(m, platform, holds, said: str) -> None:
    """Ends a simulation with what is said at the first clock edge at which something is not so."""
    if checked(platform):
        m.d.sync += Assert(holds, said)


def at_most_one(bits):
    """Whether no two of them are set."""
    return (bits & (bits - 1)) == 0
