"""Attributes of memories for the synthesis tools."""

from lbq_hw import families

__all__ = ["APART", "IN_BLOCK", "small_memory", "spared"]

APART = {"no_rw_check": 1}
"""The memory is never read at the address that is written in the same cycle, so the tools can leave
out the logic that compares addresses. `sim.collisions` checks that the promise holds.
"""
IN_BLOCK = APART | {"ram_style": "block"}
"""As `APART`, and in a block RAM even if the tools would choose registers: an iCE40 has too few."""


def spared(platform, depth: int, attrs=APART):
    """Attributes of a small memory in a core whose large memories need all block RAMs: made of
    logic if the family says so, otherwise with ``attrs``.
    """
    family = families.of_platform(platform)
    if family is not None and family.in_logic(depth):
        return APART | {"ram_style": "distributed"}
    return attrs


def small_memory(config, platform, depth: int, attrs=APART):
    """Attributes of a small memory of a core: `spared` if the core's memories fill the chip."""
    return spared(platform, depth, attrs) if config.spread else attrs
