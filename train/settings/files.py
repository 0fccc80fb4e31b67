"""The TOML files of configurations: where they are, and how they inherit from each other.

A file may name another as its ``base`` and have only the keys that differ. A shipped file with
``variants`` is a sweep: the configuration ``STEM-NAME`` is the base with the changes of
``[variants.NAME]``, and the file itself is not a configuration.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lbq_hw.train.settings.schema import ConfigError, merge

SHIPPED = Path(__file__).parents[1] / "configs"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a configuration is written: a file, or one of its `variants`."""

    path: Path
    variant: str = ""

    @property
    def name(self) -> str:
        return f"{self.path.stem}-{self.variant}" if self.variant else self.path.stem


@cache
def shipped() -> dict[str, Source]:
    """Every configuration that ships, sorted by name."""
    found = []
    for path in SHIPPED.glob("*.toml"):
        variants = _toml(path).get("variants", {})
        found += [Source(path=path, variant=name) for name in variants] or [Source(path=path)]
    return {source.name: source for source in sorted(found, key=lambda source: source.name)}


def find(name: str, beside: Path | None = None) -> Source:
    """The shipped configuration of this name, or the file at this path; a relative path starts at
    the folder ``beside``.
    """
    if name in shipped():
        return shipped()[name]
    path = (beside or Path()) / name
    if path.is_file():
        return Source(path=path)
    near = difflib.get_close_matches(name, shipped(), n=1, cutoff=0)
    raise ConfigError(
        f"{name!r} is neither a shipped configuration (nearest: {near[0]}) nor a file; "
        "`lbq train --list` shows what is shipped"
    )


def read(source: Source, seen: tuple[Source, ...] = ()) -> dict[str, Any]:
    """All keys of a configuration, including the keys of its bases."""
    if source in seen:
        raise ConfigError(f"{source.path} is its own base")
    values = _toml(source.path)
    base = values.pop("base", None)
    if source.variant:
        values = values["variants"][source.variant]
    elif "variants" in values:
        one = Source(path=source.path, variant=next(iter(values["variants"]))).name
        raise ConfigError(f"{source.path} is a sweep: name one of its variants, such as {one}")
    if base is None:
        return values
    if not isinstance(base, str):
        raise ConfigError(f"base must be a string, not {base!r}")
    below = read(find(base, source.path.parent), (*seen, source))
    merge(below, values)
    return below


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
