"""The page on layers: its table of depthwise convolutions is what the script prints."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_depthwise_convolutions_is_the_models() -> None:
    spec = importlib.util.spec_from_file_location("depthwise", DOCS / "examples" / "depthwise.py")
    assert spec is not None
    assert spec.loader is not None
    depthwise = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(depthwise)
    page = (DOCS / "layers.md").read_text("utf-8")
    shown = [line for line in page.splitlines() if "per tap |" in line or "with zeros |" in line]
    rows = [f"| {' | '.join(row)} |" for row in depthwise.rows()]
    assert [line for line in shown if line[2].isdigit()] == rows
