"""What every kind of forged input shares: random changes of JSON, and how each must end."""

from __future__ import annotations

import copy
import math
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

Found = TypeVar("Found")
SECONDS, MEMORY = 5.0, 1 << 30
"""What an input may take of a processor and of memory until it is read or refused."""
MANY = 1000
"""Inputs of each kind that the slow tests forge."""
ESCAPE = "\x1b[31mred\x1b]0;title\x07"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 5, 8, 16, 255, 4096, 1 << 31, 1 << 53, -(1 << 63), 10**30,
    0.5, -1.5, 1e308, math.nan, math.inf, "", "x", "0", "input", "../x", "/dev/zero", "a\nb",
    ESCAPE, "\ud800", "x" * 300, [], [0], [1, 1], [[[]]], {}, {"x": 1},
)  # fmt: skip


def counts(few: int) -> pytest.MarkDecorator:
    """A test with `few` inputs, and a slow one with many."""
    return pytest.mark.parametrize("count", [few, pytest.param(MANY, marks=pytest.mark.slow)])


def places(value: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each value of a tree, the tree itself first."""
    yield keys
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*keys, key))


def at(tree: Any, keys: tuple[Any, ...]) -> Any:
    """The value to which keys lead."""
    for key in keys:
        tree = tree[key]
    return tree


def change(draw: random.Random, tree: Any) -> None:
    """Change one value of a tree of JSON: another one, one of another place, once more, or none."""
    found = list(places(tree))[1:]
    if not found:
        return
    *above, key = draw.choice(found)
    parent = at(tree, tuple(above))
    kind = draw.choice(("value", "near", "near", "other", "again", "gone"))
    if kind == "value":
        parent[key] = draw.choice(VALUES)
    elif kind == "near":
        parent[key] = near(draw, parent[key])
    elif kind == "other":
        parent[key] = copy.deepcopy(at(tree, draw.choice(found)))
    elif kind == "gone":
        del parent[key]
    elif isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    else:
        parent[draw.choice((key.upper(), f"{key}2", ESCAPE))] = copy.deepcopy(parent[key])


def near(draw: random.Random, value: Any) -> Any:
    """A value that somebody could have meant: a number a little off, a text with a letter more."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return draw.choice((value + 1, value - 1, 2 * value, -value, value // 2, float(value)))
    if isinstance(value, str):
        return draw.choice((f"{value}x", value[1:], value.upper(), f"{value} "))
    if isinstance(value, list):
        return draw.choice((value[::-1], value[1:], [*value, 1], {"0": value}))
    return [value]


@contextmanager
def bounded() -> Iterator[None]:
    """Fail where what is done takes too much; time is the processor's, memory the peak's growth."""
    began, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - began < SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) * 1024 < MEMORY


def read_or_refused(
    read: Callable[[], Found], error: type[Exception], place: Path, ends: Counter[str]
) -> Found | None:
    """What is read from a forged input, or None once it was refused in a line that names it."""
    try:
        with bounded():
            found = read()
    except error as refused:
        assert_a_line(str(refused), place)
        ends["refused"] += 1
        return None
    ends["accepted"] += 1
    return found


def assert_a_line(text: str, place: Path) -> None:
    """One printable line that names the input and is not too long."""
    assert str(place) in text, text
    assert text.isprintable(), repr(text)
    assert len(text) < 700 + len(str(place)), text


def assert_both(ends: Counter[str], count: int) -> None:
    """Forgeries that all end alike would show little; `pytest -rP` prints the ends."""
    print(f"{count} forged inputs: {dict(ends)}")
    assert min(ends["refused"], ends["accepted"]) >= count // 50
