"""The tables of docs/event-time.md are those of the JSON beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lbq_hw.event_time import tables
from lbq_hw.event_time.command import main

DOCS = Path(__file__).parents[3] / "docs"
KINDS = {"layers": tables.layers, "ways": tables.ways, "memory": tables.memory}
BLOCK = re.compile(r"<!-- (\w+): ([\w-]+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)


def test_every_table_of_the_page_is_what_its_file_says() -> None:
    page = (DOCS / "event-time.md").read_text(encoding="utf-8")
    found = BLOCK.findall(page)
    names = sorted(path.stem for path in (DOCS / "event-time").glob("*.json"))
    assert sorted((name, kind) for kind, name, _ in found) == sorted(
        (name, kind) for name in names for kind in KINDS
    )
    for kind, name, text in found:
        facts = json.loads((DOCS / "event-time" / f"{name}.json").read_text(encoding="utf-8"))
        assert text == KINDS[kind](facts)


def test_the_command_prints_all_tables_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    path = DOCS / "event-time" / "nmnist.json"
    assert main(["--markdown", str(path)]) == 0
    facts = json.loads(path.read_text(encoding="utf-8"))
    assert capsys.readouterr().out == tables.markdown(facts)


def test_a_file_that_is_missing_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--markdown", "nowhere.json"]) == 2
    text = "error: nowhere.json: No such file or directory\n"
    assert capsys.readouterr().err == text
