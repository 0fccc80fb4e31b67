"""The attribute of memories that are never read where they are written in the same cycle."""

__all__ = ["APART"]

APART = {"no_rw_check": 1}
"""Spares the logic that would compare addresses. `sim.collisions` checks that the promise holds."""
