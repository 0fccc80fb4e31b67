"""What the tools are told of memories."""

from lbq_hw import families

__all__ = ["APART", "IN_BLOCK", "small_memory", "spared"]

APART = {"no_rw_check": 1}
"""Never read where it is written in the same cycle: spares the logic that would compare addresses.
`sim.collisions` checks that the promise holds.
"""
IN_BLOCK = APART | {"ram_style": "block"}
"""Also a block RAM where the tools would take registers, which an iCE40 has too few of."""


def spared(platform, depth: int, attrs=APART):
    """Attributes of a small memory in a core whose large ones take all block RAMs: it is logic,
    where the family has it so. Else it has ``attrs``.
    """
    family = families.of_platform(platform)
    if family is not None and family.in_logic(depth):
        return APART | {"ram_style": "distributed"}
    return attrs


def small_memory(config, platform, depth: int, attrs=APART):
    """Attributes of a small memory of a core: `spared` in one whose memories fill the chip."""
    return spared(platform, depth, attrs) if config.spread else attrs
