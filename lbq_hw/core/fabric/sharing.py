"""How much shares one copy of a register that many look at."""

__all__ = ["LANES", "SPREAD_LANES", "SPREAD_UNITS", "lane_groups"]

LANES = 16
"""Lanes that share the registers that let them move."""
SPREAD_LANES = 8
"""The same in a core whose lanes are all over the chip."""
SPREAD_UNITS = 4
"""Neuron units that share one copy, in a core whose units are all over the chip."""


def lane_groups(lanes: int, each: int) -> int:
    """Groups of lanes; the last one may have fewer."""
    return -(-lanes // each)
