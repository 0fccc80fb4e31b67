"""The front against its definition, and of points on boards."""

from __future__ import annotations

from exploration_points import point
from hypothesis import given
from hypothesis import strategies as st

from lbq_hw.explore.front import equals, front, of_all

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


@given(PAIRS)
def test_the_front_is_what_nothing_beats(pairs: list[tuple[int, int]]) -> None:
    expected = {one for one in pairs if not any(beats(other, one) for other in pairs)}
    assert front(pairs, lambda pair: pair) == sorted(expected)


def test_of_equal_boards_the_one_with_the_smallest_chip_stays() -> None:
    slow = point(board="ulx3s-85f", seconds=2e-3, luts=4000)
    points = [point(board=name) for name in ("ulx3s-85f", "ulx3s-45f", "ulx3s-12f")] + [slow]
    assert [(p.board, p.seconds) for p in of_all(points)] == [
        ("ulx3s-12f", 1e-3),
        ("ulx3s-85f", 2e-3),
    ]
    assert equals(of_all(points)[0], points) == ["ulx3s-45f", "ulx3s-85f"]
    assert equals(slow, points) == []
