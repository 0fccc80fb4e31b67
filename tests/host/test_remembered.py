from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lbq_hw.host import remembered
from lbq_hw.host.remembered import MAX_ENTRIES, Remembered


def test_rates_are_kept_by_board_and_port(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rates.json"
    memory = Remembered(path)
    assert memory.get("a", "usb") is None
    memory.put("a", "usb", 3)
    memory.put("a", "other", 4)
    memory.put("a", "usb", 5)
    assert (memory.get("a", "usb"), memory.get("a", "other"), memory.get("b", "usb")) == (
        5,
        4,
        None,
    )
    assert [entry.name for entry in path.parent.iterdir()] == ["rates.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "null", '{"a usb": "x"}', '{"a usb": -1}', '{"a usb": true}',
             '{"a usb": 1e3}', "[" * 100_000, "\0" * 10, " " * 100_000 + "{}"],
)  # fmt: skip
def test_a_damaged_file_is_as_good_as_none_and_is_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rates.json"
    path.write_text(text, "utf-8")
    memory = Remembered(path)
    assert memory.get("a", "usb") is None
    memory.put("a", "usb", 7)
    assert json.loads(path.read_text("utf-8")) == {"a usb": 7}


def test_bytes_that_are_no_text_are_no_rates(tmp_path: Path) -> None:
    (tmp_path / "rates.json").write_bytes(b"\xff\xfe{}")
    assert Remembered(tmp_path / "rates.json").get("a", "usb") is None


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    memory = Remembered(tmp_path / "file" / "rates.json")
    memory.put("a", "usb", 3)
    assert memory.get("a", "usb") is None
    (tmp_path / "rates.json").mkdir()
    memory = Remembered(tmp_path / "rates.json")
    memory.put("a", "usb", 3)
    assert memory.get("a", "usb") is None
    assert sorted(os.listdir(tmp_path)) == ["file", "rates.json"]


def test_the_oldest_entries_are_forgotten(tmp_path: Path) -> None:
    memory = Remembered(tmp_path / "rates.json")
    for number in range(MAX_ENTRIES + 1):
        memory.put("a", str(number), 1 + number)
    assert memory.get("a", "0") is None
    assert memory.get("a", "1") == 2


def test_the_file_is_in_the_user_s_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Remembered().put("a", "usb", 3)
    assert json.loads((tmp_path / "lbq-hw" / "rates.json").read_text("utf-8")) == {"a usb": 3}
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert remembered.folder() == tmp_path / "home" / ".cache" / "lbq-hw"
