"""What the tools are told of memories."""

__all__ = ["APART", "IN_BLOCK"]

APART = {"no_rw_check": 1}
"""Never read where it is written in the same cycle: spares the logic that would compare addresses.
`sim.collisions` checks that the promise holds.
"""
IN_BLOCK = APART | {"ram_style": "block"}
"""Also a block RAM where the tools would take registers, which an iCE40 has too few of."""
