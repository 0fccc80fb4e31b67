"""Pixels as words, and what an opening refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core.pixels.pictures import LAYOUTS, packed, pixels, random_picture

from lbq_hw.isa.door import MOST_RESULTS, Opening


@pytest.mark.parametrize("name", LAYOUTS)
def test_words_hold_the_pixels_without_gaps(name: str) -> None:
    shape = LAYOUTS[name]
    picture = random_picture(shape, 3)
    wanted = packed(shape, pixels(shape, picture), 32)
    assert shape.packed(picture).tolist() == wanted
    assert shape.words == len(wanted)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, r"^width must be at least 1, not 0$"),
        ({"word": 12}, r"^word must be a power of two from 8 on, not 12$"),
        ({"kernel": (3, 3)}, r"^pitch must be at least 9, the channels of a field of view, not 1$"),
        ({"border": 1}, r"^border_value must have one level per channel, and none without"),
        ({"stride": (1, 0)}, r"^stride must be at least 1, not \(1, 0\)$"),
        ({"base": -1}, r"^base must be at least 0, not -1$"),
        ({"bits": 9}, r"^bits must be at most 8, not 9$"),
        ({"border": 1, "border_value": (256,)}, r"^border_value must be 0 to \d+, not \(256,\)$"),
        ({"kernel": (99, 1), "pitch": 99}, r"^kernel must be at most \(.+\), not \(99, 1\)$"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(LAYOUTS["a picture as it is"], **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"results": MOST_RESULTS + 1}, r"^results must be 1\.\.58, not 59$"),
        (
            {"queue": 2},
            r"^queue must be 0 or hold the 2 words of an input and one more, not 2$",
        ),
        ({"queue": 1 << 21}, r"^queue must be at most 1048576, not 2097152$"),
    ],
)
def test_an_opening_that_cannot_be_is_refused(changes: dict[str, int], message: str) -> None:
    shape = LAYOUTS["a picture as it is"]
    with pytest.raises(ValueError, match=message):
        Opening(**({"pixels": shape, "results": 10} | changes))  # type: ignore[arg-type]
