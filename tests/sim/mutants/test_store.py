"""Results of mutants are kept line by line, and found again only for what they are of."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbq_hw.sim.mutants.__main__ import main
from lbq_hw.sim.mutants.store import Store, digest


def test_results_are_found_again_by_their_key(tmp_path: Path) -> None:
    first = Store(tmp_path / "kept")
    first.add("a", 1, None)
    first.add("a", 2, "a test")
    first.add("b", 1, True)
    again = Store(tmp_path / "kept")
    assert again.of("a") == first.of("a") == {1: None, 2: "a test"}
    assert again.of("b") == {1: True}
    assert again.of("c") == {}


def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    Store(path).add("a", 1, None)
    with path.open("a", encoding="utf-8") as stream:
        stream.write('{"key": "a", "numb')
    Store(path).add("a", 2, None)
    assert Store(path).of("a") == {1: None, 2: None}


def test_another_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept"
    path.write_text("other\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["--keep", str(path)])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {path} is not a file of results: 'other'\n")


def test_a_digest_is_of_each_part(tmp_path: Path) -> None:
    path = tmp_path / "part"
    path.write_text("one", encoding="utf-8")
    before = digest("text", path)
    assert before == digest("text", "one") != digest("textone")
    path.write_text("two", encoding="utf-8")
    assert digest("text", path) != before
