"""Checks of the size parameters of blocks."""

__all__ = ["check_power", "check_size"]


def check_size(name: str, value: int, *, least: int = 1) -> None:
    """Refuse a size that is not an integer or is below `least`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")


def check_power(name: str, value: int, *, least: int = 1) -> None:
    """Refuse a size that is not a power of two, or is below `least`."""
    check_size(name, value, least=least)
    if value & (value - 1):
        raise ValueError(f"{name} must be a power of two, not {value!r}")
