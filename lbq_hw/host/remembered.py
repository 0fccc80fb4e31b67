"""Rates that worked, by board and port: a small file in the user's cache.

Nothing depends on this file: if it is damaged or missing, the host only takes longer to find a
rate.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

FILE = "rates.json"
MAX_BYTES = 1 << 16
MAX_ENTRIES = 100
"""The oldest entries are forgotten."""


def folder() -> Path:
    """The project's folder in the user's cache."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    else:
        base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "lbq-hw"


class Remembered:
    """The rates in a file, by default in the user's cache."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def get(self, board: str, port: str) -> int | None:
        """The rate that worked last; None where none is known."""
        return self._read().get(_key(board, port))

    def put(self, board: str, port: str, rate: int) -> None:
        """Remember a rate, if the file can be written."""
        rates = self._read()
        if rates.get(_key(board, port)) == rate:
            return
        rates.pop(_key(board, port), None)
        rates[_key(board, port)] = rate
        kept = dict(list(rates.items())[-MAX_ENTRIES:])
        with suppress(OSError, RuntimeError):
            path = self._where()
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{FILE}.")
            try:
                with open(handle, "w", encoding="utf-8") as stream:
                    json.dump(kept, stream, indent=1)
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise

    def _where(self) -> Path:
        return self._path or folder() / FILE

    def _read(self) -> dict[str, int]:
        try:
            path = self._where()
            if path.stat().st_size > MAX_BYTES:
                return {}
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError, RuntimeError):  # RuntimeError: no home folder
            return {}
        if not isinstance(found, dict):
            return {}
        return {key: rate for key, rate in found.items() if type(rate) is int and rate > 0}


def _key(board: str, port: str) -> str:
    return f"{board} {port}"
