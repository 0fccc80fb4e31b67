"""The command that plants faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbq_hw.sim.mutants.__main__ import main


def test_another_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept"
    path.write_text("other\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["--keep", str(path)])
    assert ended.value.code == 2
    said = f"error: {path} is not a file of results: 'other'; choose another file\n"
    assert capsys.readouterr().err.endswith(said)
