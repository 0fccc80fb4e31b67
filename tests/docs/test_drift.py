"""Figures stand once, in tables that are made from JSON: README.md and docs/ quote none in prose.

A figure in a sentence goes stale with the next build, and nobody notices. `figures` finds those
that look measured, whatever their value, and those that a JSON file has, in any prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lbq_hw import units, zoo

ROOT = Path(__file__).parents[2]
GENERATED = {"evidence.md", "isa.md", "results.md"}
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in GENERATED),
]
MEASURED = re.compile(
    r"\d[\d.,]* images(?:/s| per second)"
    r"|\d\d\.\d+ %"  # an accuracy
    r"|\d+\.\d+ MHz"
    r"|\d+(?:\.\d+)? M cycles"
    r"|\d+\.\d+ [mu]s per image"
)


def prose(page: str) -> Iterator[str]:
    """The paragraphs of a page, each on one line: no tables, no code, nothing that is generated."""
    page = re.sub(r"<!-- (\w+)\b.*?<!-- /\1 -->", "", page, flags=re.S)
    page = re.sub(r"^```.*?^```$", "", page, flags=re.S | re.M)
    for paragraph in re.split(r"\n\s*\n|\n(?=[|*])", page):
        if not re.match(r"\||    |<", paragraph):
            yield " ".join(paragraph.split())


def known() -> set[str]:
    """Figures of the builds and of the zoo, as pages write them."""
    found = set()
    for path in (ROOT / "docs" / "builds").glob("*.json"):
        made = json.loads(path.read_text("utf-8"))
        found |= {f"{made['accuracy']:.2f}", units.three_digits(made["fmax_hz"] / 1e6)}
        found |= {f"{made['cycles']:,.0f}", units.three_digits(made["cycles"] / 1e6)}
    for name in zoo.names():
        found.add(f"{json.loads(zoo.evaluation(name).read_text('utf-8'))['accuracy']:.2f}")
    return {figure for figure in found if len(figure.replace(",", "")) >= 4}


def figures(page: str, known: set[str]) -> list[str]:
    """Every figure in the prose of a page that belongs into a table."""
    found = []
    for paragraph in prose(page):
        found += MEASURED.findall(paragraph)
        found += [number for number in re.findall(r"\d[\d.,]*\d", paragraph) if number in known]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_has_no_figures_that_a_table_has(page: Path) -> None:
    assert figures(page.read_text("utf-8"), known()) == []


PLANTED = {
    "a rate": ("The board runs 9.1 images/s.", "9.1 images/s"),
    "a rate on two lines": ("which is 9.0 images per\nsecond", "9.0 images per second"),
    "an accuracy": ("It reaches 97.51 % on CIFAR-10.", "97.51 %"),
    "a clock": ("It ended at 73.3 MHz.", "73.3 MHz"),
    "a latency": ("It takes 3.65 ms per image.", "3.65 ms per image"),
    "cycles": ("They take 8.3 M cycles.", "8.3 M cycles"),
    "a point of a list": ("Two things:\n\n* one\n* 9.1 images/s", "9.1 images/s"),
}


@pytest.mark.parametrize(("text", "figure"), PLANTED.values(), ids=PLANTED)
def test_a_planted_figure_is_found(text: str, figure: str) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert figures(f"{readme}\n\n{text}\n", set()) == [figure]


def test_a_planted_copy_of_a_figure_is_found_without_its_unit() -> None:
    path = min((ROOT / "docs" / "builds").glob("*.json"))
    cycles = f"{json.loads(path.read_text('utf-8'))['cycles']:,.0f}"
    assert figures(f"It needs {cycles} of them.", known()) == [cycles]


def test_tables_code_and_what_is_generated_are_left_alone() -> None:
    page = """<!-- builds: a command -->
It runs 9.1 images/s.
<!-- /builds -->

| board | 9.1 images/s |

    lbq says 9.1 images/s

```
9.1 images/s
```
"""
    assert figures(page, set()) == []
