"""See `repeatable`."""

from repeatable import repeatable

__all__ = ["repeatable"]
