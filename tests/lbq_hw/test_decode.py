"""Readers of JSON values: what they take, and what they refuse with the place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import pytest

from lbq_hw import decode
from lbq_hw.decode import DecodeError, MissingKeyError, UnknownKeyError


@dataclass(frozen=True, kw_only=True)
class Point:
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(f"x must be at least 0, not {self.x}")


@dataclass(frozen=True, kw_only=True)
class Drawing:
    points: tuple[Point, ...]
    kind: Literal["open", "closed"]
    scale: float = 1.0
    size: tuple[int, str] = (0, "mm")
    title: str | None = None
    tags: Sequence[str] = ()
    marks: Mapping[str, float] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    hidden: bool = False


SMALLEST = {"points": [], "kind": "open"}


def read(values: Any) -> Drawing:
    return decode.reader(Drawing)(values, "drawing")


def test_an_object_becomes_a_dataclass_with_those_inside_it() -> None:
    assert read(
        {
            "points": [{"x": 1}, {"x": 2, "y": 3}],
            "kind": "closed",
            "scale": 2,
            "size": [4, "cm"],
            "title": "t",
            "tags": ["a", "b"],
            "marks": {"m": 1},
            "more": {"n": [None]},
            "hidden": True,
        }
    ) == Drawing(
        points=(Point(x=1), Point(x=2, y=3)),
        kind="closed",
        scale=2.0,
        size=(4, "cm"),
        title="t",
        tags=("a", "b"),
        marks={"m": 1.0},
        more={"n": [None]},
        hidden=True,
    )


def test_keys_with_a_default_may_be_left_out_and_none_is_kept() -> None:
    assert read(SMALLEST | {"title": None}) == Drawing(points=(), kind="open")
    assert type(read(SMALLEST | {"scale": 3}).scale) is float


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": 1}, "drawing has the unknown key 'colour'"),
        ({"titel": 1}, "drawing has the unknown key 'titel' (nearest: 'title')"),
        ({"points": {}}, "drawing.points must be a list, not {}"),
        ({"points": [1]}, "drawing.points[0] must be an object, not 1"),
        ({"points": [{}]}, "drawing.points[0] lacks the key 'x'"),
        ({"points": [{"x": True}]}, "drawing.points[0].x must be an integer, not True"),
        ({"points": [{"x": -1}]}, "drawing.points[0]: x must be at least 0, not -1"),
        ({"kind": "round"}, "drawing.kind must be one of 'open', 'closed', not 'round'"),
        ({"scale": "2"}, "drawing.scale must be a number, not '2'"),
        ({"scale": False}, "drawing.scale must be a number, not False"),
        ({"size": [1]}, "drawing.size must be a list of 2, not [1]"),
        ({"size": [1, 2]}, "drawing.size[1] must be a string, not 2"),
        ({"title": 3}, "drawing.title must be a string, not 3"),
        ({"marks": {"m": None}}, "drawing.marks.m must be a number, not None"),
        ({"marks": {"\n": None}}, r"drawing.marks.'\n' must be a number, not None"),
        ({"marks": []}, "drawing.marks must be an object, not []"),
        ({"hidden": 0}, "drawing.hidden must be true or false, not 0"),
        ({"title": ["x" * 200]}, f"drawing.title must be a string, not ['{'x' * 98}..."),
        (
            {"scale": 10**400},
            f"drawing.scale must be a number within 1e308, not 1{'0' * 99}...",
        ),
    ],
)
def test_what_does_not_belong_is_refused_with_its_place(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(DecodeError, match=f"^{re.escape(message)}$"):
        read(SMALLEST | change)


def test_the_error_of_a_key_has_its_path_even_where_the_outermost_object_has_no_name() -> None:
    with pytest.raises(UnknownKeyError) as unknown:
        decode.reader(Drawing)(SMALLEST | {"points": [{"z": 1}]}, "")
    assert unknown.value.key == "points[0].z"
    with pytest.raises(MissingKeyError) as missing:
        decode.reader(Drawing)({"kind": "open"}, "")
    assert missing.value.key == "points"


def test_a_string_becomes_a_member_of_its_enum() -> None:
    class Colour(StrEnum):
        RED = "red"
        BLUE = "blue"

    assert decode.reader(Colour)("red", "colour") is Colour.RED
    for wrong in ("RED", 0, ["red"]):
        with pytest.raises(DecodeError) as error:
            decode.reader(Colour)(wrong, "colour")
        assert str(error.value) == f"colour must be one of 'red', 'blue', not {wrong!r}"


def test_a_type_without_a_reader_is_told() -> None:
    with pytest.raises(TypeError, match=r"^there is no reader of <class 'complex'>$"):
        decode.reader(complex)
