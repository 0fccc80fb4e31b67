"""docs/ as a site: it builds, every link leads somewhere, nothing is loaded from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "tools" / "site" / "mkdocs.yml"


def build(config: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """With ``--quiet``, mkdocs would not count warnings, and ``--strict`` would refuse nothing."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_builds_and_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = build(CONFIG, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    pages = {path: path.read_text("utf-8") for path in (tmp_path / "site").rglob("*.html")}
    names = {path.name for path in pages}
    docs = {path.with_suffix(".html").name for path in (ROOT / "docs").glob("*.md")}
    assert docs <= names
    for text in pages.values():
        assert not re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=.https?://[^>]*>", text)
    api = (tmp_path / "site" / "api" / "train.html").read_text("utf-8")
    assert "lbq_hw.train.neurons.LBQ" in api
    index = (tmp_path / "site" / "search" / "search_index.json").read_text("utf-8")
    assert "burst" in index


def test_every_page_is_in_the_navigation() -> None:
    text = CONFIG.read_text("utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        assert f": {path.relative_to(ROOT / 'docs')}\n" in text


@pytest.mark.slow
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    for name in ("docs", "tools", "lbq_hw", "train"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.lbq"))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    page = tmp_path / "docs" / "zoo.md"
    page.write_text(page.read_text("utf-8") + "\n[lost](lost.md)\n", encoding="utf-8")
    done = build(tmp_path / "tools" / "site" / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert "lost.md" in done.stderr
