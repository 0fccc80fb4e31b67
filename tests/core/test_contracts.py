"""Every component of the core says what it does, and has a test file of its own.

The tests mirror the tree: a component of lbq_hw/core/walk/loops.py is imported, and so tested, by
tests/core/walk/test_loops.py. A variant of a component may be tested where that is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import pytest

from lbq_hw.diagram.components import components, file_of

TESTS = Path(__file__).parent
COMPONENTS = components()


def place_of_tests(kind: type, folder: Path) -> Path:
    """Where the tests of a component belong."""
    inside = PurePosixPath(file_of(kind)).relative_to("lbq_hw/core")
    return folder / inside.parent / f"test_{inside.name}"


def imported(path: Path) -> set[tuple[str, str]]:
    """Modules and names that a file imports by name; nothing of a file that is not there."""
    if not path.exists():
        return set()
    tree = ast.parse(path.read_text())
    return {
        (node.module or "", name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }


def untested(kinds: Iterable[type], folder: Path) -> list[str]:
    """Components that their test file does not import, or that have none."""
    return [
        f"{kind.__name__} of {file_of(kind)} needs tests in {place_of_tests(kind, folder).name}"
        for kind in kinds
        if not any(
            (kind.__module__, kind.__name__) in imported(place_of_tests(base, folder))
            for base in kind.__mro__
            if base in COMPONENTS.values()
        )
    ]


def test_every_component_has_a_test_file_that_imports_it() -> None:
    assert untested(COMPONENTS.values(), TESTS) == []


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_component_has_a_contract(name: str) -> None:
    contract = vars(COMPONENTS[name]).get("__doc__") or ""
    assert len(contract.split()) > 5


def test_a_component_whose_test_file_is_missing_or_does_not_import_it_is_named(
    tmp_path: Path,
) -> None:
    flags, words = COMPONENTS["FlagFetch"], COMPONENTS["WordFetch"]
    (tmp_path / "scan").mkdir()
    kinds = [flags, words, COMPONENTS["Loops"]]
    needs = "of lbq_hw/core/scan/fetch.py needs tests in test_fetch.py"
    loops = "Loops of lbq_hw/core/walk/loops.py needs tests in test_loops.py"
    assert untested(kinds, tmp_path) == [f"FlagFetch {needs}", f"WordFetch {needs}", loops]
    text = f"from {flags.__module__} import FlagFetch\n"
    (tmp_path / "scan" / "test_fetch.py").write_text(text)
    assert untested(kinds, tmp_path) == [f"WordFetch {needs}", loops]
