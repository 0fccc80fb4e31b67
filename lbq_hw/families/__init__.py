"""Families of FPGAs: one object each. docs/families.md says how to add one."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, Any

from lbq_hw.families.base import PLL, Family, FamilyError

if TYPE_CHECKING:
    from lbq_hw.boards import Board

__all__ = [
    "PLL", "Family", "FamilyError", "every", "find", "module", "names", "of", "of_platform", "plls",
]  # fmt: skip


@cache
def _families() -> dict[str, Family]:
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = [
        importlib.import_module(f"{__name__}.{module}").FAMILY
        for module in modules
        if module != "base"
    ]
    return {family.name: family for family in found}


def names() -> list[str]:
    """Names of all families, sorted."""
    return list(_families())


def every() -> list[Family]:
    """All families, by name."""
    return list(_families().values())


def find(name: str) -> Family:
    """The family of this name."""
    if name not in _families():
        raise FamilyError(f"family must be one of {', '.join(names())}, not {name!r}")
    return _families()[name]


def of(board: Board) -> Family:
    """The family of a board with a fabric."""
    if board.family is None:
        raise FamilyError(f"board {board.name!r} has no fabric")
    return find(board.family)


def of_platform(platform: Any) -> Family | None:
    """The family of an Amaranth platform's device; None in simulation."""
    device = str(getattr(platform, "device", None) or getattr(platform, "part", ""))
    found = [family for family in every() if device.startswith(family.devices)]
    return found[0] if found else None


def plls() -> dict[str, PLL]:
    """The PLLs of all families."""
    return {name: pll for family in every() for name, pll in family.plls.items()}


def module(package: str, family: str | None, *, what: str, suffix: str = "") -> Any:
    """A family's own module in another package. If there is none, FamilyError says that the family
    lacks `what`.
    """
    name = f"{package}.{family}{suffix}"
    if importlib.util.find_spec(name) is None:
        path = name.replace(".", "/")
        raise FamilyError(f"the family {family} has no {what} ({path}.py): see docs/families.md")
    return importlib.import_module(name)
