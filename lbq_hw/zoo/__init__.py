"""Trained networks that ship with the project, found by name."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from lbq_hw.file import FileError

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Names of the networks in the zoo, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.lbq"))


def evaluation(name: str) -> Path:
    """The file beside a zoo network that holds what ``lbq_hw.evaluate --json`` printed of it."""
    return find(name).with_suffix(".json")


def find(name_or_path: str | os.PathLike[str]) -> Path:
    """The file of a model given as a path or as a zoo name such as ``digits``; a file comes first.

    Raises `FileError` that lists the zoo and the nearest name when it is neither.
    """
    path = Path(name_or_path)
    if path.is_file():
        return path
    known, name = names(), os.fspath(name_or_path)
    if name in known:
        return _FOLDER / f"{name}.lbq"
    message = f"no model {name!r}: give the path of an .lbq file or a name of the zoo"
    message += f" ({', '.join(known)})" if known else " (which is empty)"
    if nearest := difflib.get_close_matches(Path(name).stem, known, n=1):
        message += f"; did you mean {nearest[0]!r}?"
    raise FileError(message)
