"""Results as JSON lines, so that a run can be stopped and resumed, or made in pieces.

A line has a `key`, a digest of all that its result depends on, so that one file holds the results
of several cores and seeds, and results of other sources are not used.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

__all__ = ["Store", "digest"]


class Store:
    """Results by key and number; in a file, if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept: dict[tuple[str, int], Any] = {}
        if path is None or not path.exists():
            return
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # drops a last line that was cut off
            path.write_text(whole, encoding="utf-8")
        for line in whole.splitlines():
            try:
                told = json.loads(line)
                self._kept[told["key"], told["number"]] = told["result"]
            except (ValueError, TypeError, KeyError):
                raise ValueError(f"{path} is not a file of results: {line[:40]!r}") from None

    def of(self, key: str) -> dict[int, Any]:
        """The results of a key, by their numbers."""
        return {number: result for (own, number), result in self._kept.items() if own == key}

    def add(self, key: str, number: int, result: Any) -> None:
        """Add a result; it is in the file when this returns."""
        self._kept[key, number] = result
        if self._path is not None:
            line = json.dumps({"key": key, "number": number, "result": result})
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(line + "\n")


def digest(*parts: str | Path) -> str:
    """A digest of texts and files."""
    texts = (part if isinstance(part, str) else part.read_text("utf-8") for part in parts)
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
