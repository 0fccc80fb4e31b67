"""Results that outlive the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbq_hw.store import Store, key_of


def test_a_line_that_was_cut_off_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "out" / "results.jsonl"
    store = Store(path)
    store.add("a", [1, {"b": 2.5}])
    with path.open("a", encoding="utf-8") as stream:
        stream.write('{"key": "c", "res')  # it was killed here
    again = Store(path)
    assert ("a" in again, again["a"], "c" in again) == (True, [1, {"b": 2.5}], False)
    again.add("c", None)
    assert "c" in Store(path)
    assert len(path.read_text("utf-8").splitlines()) == 2


@pytest.mark.parametrize("text", ["hello", "[1]", '{"key": "a"}', "3"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="is not a file of results: "):
        Store(tmp_path / "a")


def test_a_key_names_every_part() -> None:
    assert key_of("a", {"x": 1, "y": 2}) == key_of("a", {"y": 2, "x": 1})
    assert key_of("a", {"x": 1}) != key_of("a", {"x": 2})
