"""What the tools are told of memories."""

from lbq_hw.config import CoreConfig

__all__ = ["APART", "IN_BLOCK", "small"]

APART = {"no_rw_check": 1}
"""Never read where it is written in the same cycle: spares the logic that would compare addresses.
`sim.collisions` checks that the promise holds.
"""
IN_BLOCK = APART | {"ram_style": "block"}
"""Also a block RAM where the tools would take registers, which an iCE40 has too few of."""
_IN_LOGIC = APART | {"ram_style": "distributed"}


def small(config: CoreConfig, platform, attrs=APART):
    """Attributes of a memory of some kbit: ``attrs``, but for a core with external memory on an
    ECP5. Its large memories take all block RAMs, and logic is left, which can be memory there.
    """
    on_ecp5 = str(getattr(platform, "device", "")).startswith("LFE5")
    return _IN_LOGIC if config.external and on_ecp5 else attrs
