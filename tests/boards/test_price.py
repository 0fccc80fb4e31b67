"""What a board costs, with source and date."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lbq_hw import boards
from lbq_hw.boards.price import Price

GIVEN: dict[str, Any] = {
    "amount": 50,
    "currency": "USD",
    "source": "a shop",
    "date": "2026-01-31",
}


def test_a_price_is_among_the_facts_of_a_board() -> None:
    board = boards.find("icebreaker")
    assert replace(board, price=Price(**GIVEN)).facts()["price"] == GIVEN
    assert replace(board, price=None).facts()["price"] is None
    with pytest.raises(ValueError, match="price must be a Price, or None, not 5"):
        replace(board, price=5)  # pyright: ignore


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("amount", 0, "amount of a price must be above 0, not 0"),
        ("currency", "dollars", "currency must be three letters such as USD, not 'dollars'"),
        ("source", "", "source of a price must say who asks it, not ''"),
        ("date", "1.2.2026", "date of a price must be like 2026-01-31, not '1.2.2026'"),
    ],
)
def test_a_price_without_source_or_date_is_refused(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        Price(**GIVEN | {field: value})
    assert str(refused.value) == sentence
