"""Fan-out limits: how many lanes or units share one copy of a control register."""

__all__ = ["LANES", "SPREAD_LANES", "SPREAD_UNITS", "lane_groups"]

LANES = 16
"""Lanes that share one copy of their enable registers."""
SPREAD_LANES = 8
"""The same in a core whose lanes are spread over the chip."""
SPREAD_UNITS = 4
"""Neuron units that share one copy, in a core whose units are spread over the chip."""


def lane_groups(lanes: int, each: int) -> int:
    """Number of groups of lanes; the last group may have fewer lanes."""
    return -(-lanes // each)
