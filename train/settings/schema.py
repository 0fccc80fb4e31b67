"""Dictionaries to dataclasses: `lbq_hw.decode`, with errors that name the nearest key.

This file knows nothing of training; :mod:`train.settings.config` defines the keys.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping
from typing import Any, get_type_hints

from lbq_hw import decode
from lbq_hw.decode import DecodeError, MissingKeyError, UnknownKeyError


class ConfigError(DecodeError):
    """A configuration that cannot be used; the message is one sentence for the user."""


def require(ok: bool, key: str, want: str, value: object) -> None:
    """Raise ConfigError unless ok: ``key`` must be ``want``."""
    if not ok:
        raise ConfigError(f"{key} must be {want}, not {value!r}")


def parse(text: str) -> dict[str, Any]:
    """``section.key=value`` as nested dictionaries; the value is written as in TOML."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"an override must read key=value, not {text!r}")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()  # a bare word, so that names need no quotes within shell quotes
    for part in reversed(key.strip().split(".")):
        parsed = {part: parsed}
    return parsed


def merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Overwrite values of ``into``, section by section."""
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def build(cls: type, values: Any) -> Any:
    """An instance of a dataclass, with nested dataclasses, from a dictionary."""
    try:
        return decode.reader(cls)(values, "")
    except ConfigError:
        raise
    except UnknownKeyError as error:
        near = difflib.get_close_matches(error.key, _keys(cls), n=1, cutoff=0)[0]
        raise ConfigError(f"{error.key} is not a configuration key (nearest: {near})") from None
    except MissingKeyError as error:
        raise ConfigError(f"{error.key} is missing from the configuration") from None
    except DecodeError as error:
        raise ConfigError(str(error)) from None


def _keys(cls: type, path: str = "") -> list[str]:
    keys: list[str] = []
    for name, kind in get_type_hints(cls).items():
        section = isinstance(kind, type) and dataclasses.is_dataclass(kind)
        keys += _keys(kind, f"{path}{name}.") if section else [path + name]
    return keys


def plain(value: Any) -> Any:
    """The same value with tuples as lists, as in JSON."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def flat(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Nested dictionaries as one dictionary with dotted keys."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{path}{key}.")
        else:
            found[path + key] = value
    return found


def check_fixed(
    values: Mapping[str, Any], fixed: Mapping[tuple[str, str], Mapping[str, Any]]
) -> None:
    """Raise ConfigError if a key has a value for which ``fixed`` fixes other keys, and one of these
    has another value; ``values`` come from :func:`flat`.
    """
    for (key, choice), kept in fixed.items():
        for name, value in kept.items() if values[key] == choice else ():
            want = f"{value!r} with {key} = {choice!r}"
            require(values[name] == value, name, want, values[name])
