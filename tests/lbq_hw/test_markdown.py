"""Markdown tables."""

from lbq_hw import markdown


def test_columns_of_words_are_left_and_those_of_numbers_right() -> None:
    assert markdown.table(("name", "size", "note"), [("a", 1, "x")], words=(0, 2)) == (
        "| name | size | note |\n| --- | --: | --- |\n| a | 1 | x |\n"
    )


def test_the_first_column_holds_words_unless_told_otherwise() -> None:
    assert markdown.table(("name", "size"), []) == "| name | size |\n| --- | --: |\n"
