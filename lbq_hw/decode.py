"""JSON values as Python objects, strictly.

An unknown key, a missing key, or a value of a wrong kind is a `DecodeError` that names the place. A
`Reader` takes a value and its place. `reader` makes a Reader from a type; the other functions make
Readers for which a type is not specific enough.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Reader = Callable[[Any, str], Any]
_LONGEST = 100  # characters of a value in an error


class DecodeError(ValueError):
    """A value does not fit its place; the message is one sentence."""


class UnknownKeyError(DecodeError):
    """An object has an unknown key; `key` is the whole path to it."""

    def __init__(self, place: str, key: str, known: Iterable[str]) -> None:
        self.key = joined(place, key)
        near = difflib.get_close_matches(key[:_LONGEST], list(known), n=1)
        hint = f" (nearest: {near[0]!r})" if near else ""
        super().__init__(f"{place} has the unknown key {shown(key)}{hint}")


class MissingKeyError(DecodeError):
    """An object lacks a key; `key` is the whole path to it."""

    def __init__(self, place: str, key: str) -> None:
        self.key = joined(place, key)
        super().__init__(f"{place} lacks the key {key!r}")


def require(ok: bool, place: str, wanted: str, value: object) -> None:
    """Raise DecodeError unless `ok`: the value at `place` must be as `wanted` says."""
    if not ok:
        raise DecodeError(f"{place} must be {wanted}, not {shown(value)}")


def shown(value: object) -> str:
    """A value from outside for an error message, in one line and not too long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def joined(place: str, key: str) -> str:
    """The place of a key; the outermost object may have an empty name."""
    return f"{place}.{key}" if place else key


def check_keys(
    value: Any, place: str, known: Iterable[str], *, optional: Iterable[str] = ()
) -> None:
    """Refuse a value that is not an object with the keys `known`; `optional` may be left out."""
    require(isinstance(value, Mapping), place, "an object", value)
    known = list(known)
    for key in value:
        if key not in known:
            raise UnknownKeyError(place, key, known)
    for key in known:
        if key not in value and key not in optional:
            raise MissingKeyError(place, key)


def of_kind(wanted: str, *kinds: Any) -> Reader:
    """A value of one of these classes, as it is."""

    def read(value: Any, place: str) -> Any:
        # bool is a subclass of int, but not accepted as a number
        is_kind = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        require(is_kind, place, wanted, value)
        return value

    return read


def optional(read: Reader) -> Reader:
    """None, or a value that `read` accepts."""
    return lambda value, place: None if value is None else read(value, place)


def list_of(read: Reader, length: int | None = None) -> Reader:
    """A list, returned as a tuple; with this length, if given."""
    wanted = "a list" if length is None else f"a list of {length}"

    def read_list(value: Any, place: str) -> tuple[Any, ...]:
        fits = isinstance(value, list | tuple) and length in (None, len(value))
        require(fits, place, wanted, value)
        return tuple(read(item, f"{place}[{index}]") for index, item in enumerate(value))

    return read_list


def record(
    make: Callable[..., Any], readers: Mapping[str, Reader], *, optional: Sequence[str] = ()
) -> Reader:
    """An object with these keys, passed to `make` as keywords; `optional` keys may be left out."""

    def read_record(value: Any, place: str) -> Any:
        check_keys(value, place, readers, optional=optional)
        given = {key: read for key, read in readers.items() if key in value}
        return make(**{key: read(value[key], joined(place, key)) for key, read in given.items()})

    return read_record


string = of_kind("a string", str)
integer = of_kind("an integer", int)
number = of_kind("a number", int, float)
boolean = of_kind("true or false", bool)


def _real(value: Any, place: str) -> float:
    try:
        return float(number(value, place))
    except OverflowError:
        raise DecodeError(f"{place} must be a number within 1e308, not {shown(value)}") from None


_BASIC: dict[Any, Reader] = {
    Any: lambda value, _place: value,
    str: string,
    int: integer,
    float: _real,
    bool: boolean,
}


@cache
def reader(kind: Any) -> Reader:
    """The reader of an annotated type: a dataclass, a basic type, an enum of strings, or a
    container of such.

    Keys of a dataclass that have a default may be left out. Errors of its own checks get the place
    too.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _BASIC:
        return _BASIC[kind]
    if is_dataclass(kind):
        return _dataclass(kind)
    if origin in (Union, UnionType):
        (kind,) = (option for option in arguments if option is not NoneType)
        return optional(reader(kind))
    if origin is Literal:
        return _choice(arguments)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        chosen = _choice([member.value for member in kind])
        return lambda value, place: kind(chosen(value, place))
    if origin is tuple and arguments[-1] is not ...:
        return _tuple([reader(argument) for argument in arguments])
    if origin in (tuple, Sequence):
        return list_of(reader(arguments[0]))
    if origin in (dict, Mapping):
        return _mapping(reader(arguments[1]))
    raise TypeError(f"there is no reader of {kind!r}")


def _dataclass(kind: Any) -> Reader:
    hints = get_type_hints(kind)

    def make(place: str, values: Mapping[str, Any]) -> Any:
        try:
            return kind(**values)
        except DecodeError:
            raise
        except (TypeError, ValueError) as error:
            raise DecodeError(f"{place}: {error}" if place else str(error)) from None

    readers = {field.name: reader(hints[field.name]) for field in fields(kind)}
    spare = [
        field.name
        for field in fields(kind)
        if field.default is not MISSING or field.default_factory is not MISSING
    ]
    read = record(dict, readers, optional=spare)
    return lambda value, place: make(place, read(value, place))


def _choice(options: Sequence[Any]) -> Reader:
    wanted = f"one of {', '.join(map(repr, options))}"

    def read(value: Any, place: str) -> Any:
        require(value in options, place, wanted, value)
        return value

    return read


def _tuple(readers: Sequence[Reader]) -> Reader:
    whole = list_of(_BASIC[Any], len(readers))

    def read(value: Any, place: str) -> tuple[Any, ...]:
        pairs = enumerate(zip(readers, whole(value, place), strict=True))
        return tuple(each(item, f"{place}[{index}]") for index, (each, item) in pairs)

    return read


def _mapping(read: Reader) -> Reader:
    def read_mapping(value: Any, place: str) -> dict[str, Any]:
        require(isinstance(value, Mapping), place, "an object", value)
        return {key: read(item, joined(place, _plain(key))) for key, item in value.items()}

    return read_mapping


def _plain(key: str) -> str:
    """A key from outside, as part of a place."""
    return key if key.isprintable() and len(key) <= _LONGEST else shown(key)


def printable(text: str) -> str:
    """A text in one line; control characters are replaced by their codes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
