"""The report of a build: JSON files with fixed names, and ``report.html``, made from these files.

``python -m lbq_hw.report FOLDER`` makes the page of a folder again.
"""

from __future__ import annotations

from pathlib import Path

from jinja2 import TemplateError

from lbq_hw.report import store
from lbq_hw.report.facts import Facts
from lbq_hw.report.page import render
from lbq_hw.report.store import ReportError

__all__ = ["PAGE", "Facts", "ReportError", "rebuild", "write"]

PAGE = "report.html"


def write(folder: Path, facts: Facts) -> Path:
    """Write the JSON files, then make the page from these files only; returns its path."""
    store.write(folder, facts)
    return rebuild(folder)


def rebuild(folder: Path) -> Path:
    """Make the page from the JSON files in `folder`; returns its path."""
    page, facts = folder / PAGE, store.read(folder)
    try:
        text = render(facts)
    except (TemplateError, *store.NONSENSE) as error:
        raise ReportError(
            f"no page can be made from the facts in {folder} ({error}): build it again"
        ) from error
    page.write_text(text, encoding="utf-8")
    return page
