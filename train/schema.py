"""Dictionaries to dataclasses, strictly: unknown keys and wrong types are errors that name the key.

Knows nothing of training; :mod:`train.config` says what the keys are.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


class ConfigError(ValueError):
    """A configuration that can not be used; the message is one sentence for the user."""


def require(ok: bool, key: str, want: str, value: object) -> None:
    """Raise unless ok: ``key`` must be what is wanted."""
    if not ok:
        raise ConfigError(f"{key} must be {want}, not {value!r}")


def parse(text: str) -> dict[str, Any]:
    """``section.key=value``, the value as in TOML, as nested dictionaries."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"an override must read key=value, not {text!r}")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()  # a bare word, so that names need no quotes inside the shell's
    for part in reversed(key.strip().split(".")):
        parsed = {part: parsed}
    return parsed


def merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Lay values over those of ``into``, section by section."""
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def build(cls: type, values: Any) -> Any:
    """An instance of a dataclass, nested ones included, from a dictionary."""
    return _build(cls, values, "", cls)


def _build(cls: type, values: Any, path: str, root: type) -> Any:
    if not isinstance(values, Mapping):
        raise ConfigError(f"{path} must be a section, not {values!r}")
    hints = get_type_hints(cls)
    known = {f.name: f for f in dataclasses.fields(cls)}
    dot = f"{path}." if path else ""
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(dot + key, _keys(root), n=1, cutoff=0)[0]
            raise ConfigError(f"{dot}{key} is not a configuration key (nearest: {near})")
    for key, entry in known.items():
        bare = entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
        if bare and key not in values:
            raise ConfigError(f"{dot}{key} is missing from the configuration")
    fields = {key: _check(hints[key], value, dot + key, root) for key, value in values.items()}
    try:
        return cls(**fields)
    except ConfigError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from None


def _keys(cls: type, path: str = "") -> list[str]:
    keys: list[str] = []
    for name, kind in get_type_hints(cls).items():
        section = isinstance(kind, type) and dataclasses.is_dataclass(kind)
        keys += _keys(kind, f"{path}{name}.") if section else [path + name]
    return keys


def _check(kind: Any, value: Any, path: str, root: type) -> Any:
    """The value as that type, or an error that names the key."""
    if dataclasses.is_dataclass(kind):
        return _build(kind, value, path, root)  # type: ignore[arg-type]
    if get_origin(kind) in (Union, types.UnionType):
        if value is None:
            return None
        kind = next(arm for arm in get_args(kind) if arm is not type(None))
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        require(value in choices, path, "one of " + ", ".join(map(repr, choices)), value)
        return value
    if get_origin(kind) is tuple:
        arms = get_args(kind)
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{path} must be an array, not {value!r}")
        if arms[-1] is not Ellipsis and len(value) != len(arms):
            raise ConfigError(f"{path} must be an array of {len(arms)}, not {value!r}")
        return tuple(_check(arms[0], item, f"{path}[{i}]", root) for i, item in enumerate(value))
    if kind is float and type(value) is int:
        return float(value)
    names = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
    require(type(value) is kind, path, names[kind], value)
    return value


def plain(value: Any) -> Any:
    """The same with lists for tuples, as JSON has it."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def flat(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, keyed by dotted paths."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{path}{key}.")
        else:
            found[path + key] = value
    return found
