"""The glossary: its words are in use, what it names exists, and what it replaces is gone."""

from __future__ import annotations

import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text("utf-8")
PACKAGES = ("lbq_hw", "train", "sim", "boards")
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def tables(head: str) -> list[list[str]]:
    """The rows of all tables that begin with this column."""
    rows = []
    for block in PAGE.split("\n\n"):
        if block.startswith(f"| {head} |"):
            rows += [
                [c.strip() for c in line.strip("|").split("|")] for line in block.split("\n")[2:]
            ]
    return [row for row in rows if len(row) > 1]


TERMS = {row[0]: row for row in tables("term")}
REPLACED = [word.strip() for row in tables("instead of") for word in row[0].split(",")]


@cache
def code() -> str:
    """All Python of the packages as running text."""
    files = sorted(file for name in PACKAGES for file in (ROOT / name).rglob("*.py"))
    return re.sub(r"\s+", " ", " ".join(file.read_text("utf-8") for file in files))


def test_there_is_one_entry_per_term_with_one_sentence() -> None:
    assert len(TERMS) == len(tables("term")) >= 60
    for term, (_, meaning, _) in TERMS.items():
        assert meaning.endswith("."), term
        assert ". " not in meaning, term


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_in_use(term: str) -> None:
    assert re.search(rf"(?<![a-z]){re.escape(term)}(s|es)?(?![a-z])", code(), re.I)


@pytest.mark.parametrize("term", TERMS)
def test_what_a_term_names_exists(term: str) -> None:
    (name,) = re.findall(r"^`([\w.]+)`$", TERMS[term][2])
    if name[0].isupper():
        assert re.search(rf"\bclass {name}\b", code())
    else:
        pkgutil.resolve_name(name)


@pytest.mark.parametrize("word", REPLACED)
def test_a_word_that_is_replaced_does_not_occur_in_the_pages(word: str) -> None:
    flags = re.I if word.islower() else 0
    for page in PAGES:
        text = page.read_text("utf-8")
        if page.name == "glossary.md":
            text = text.partition("\n## Instead of\n")[0]
        found = re.search(rf"\b{re.escape(word)}s?\b", re.sub(r"\s+", " ", text), flags)
        assert found is None, page.name


def test_the_words_of_several_things_are_explained() -> None:
    words = dict(tables("word"))
    assert {"step", "frame", "window", "image"} <= words.keys()
    for meaning in ("gamma", "step of the walk", "step of a build", "Timestep"):
        assert meaning in words["step"]
