"""Results as JSON lines, so that long work can be stopped and resumed.

Each line has a `key`, which names all that its result depends on. Results with other keys, such as
results of older sources, are ignored.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def key_of(*parts: Any) -> str:
    """A digest of JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


class Store:
    """A file of results, to which new ones are added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._results: dict[str, Any] = {}
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            return
        text = path.read_text(encoding="utf-8")
        kept = text[: text.rfind("\n") + 1]  # a line without its end was cut off
        for line in kept.splitlines():
            try:
                found = json.loads(line)
                self._results[found["key"]] = found["result"]
            except (ValueError, TypeError, KeyError):
                raise ValueError(
                    f"{path} is not a file of results: {line[:40]!r}; choose another file"
                ) from None
        if kept != text:
            path.write_text(kept, encoding="utf-8")

    def __contains__(self, key: str) -> bool:
        return key in self._results

    def __getitem__(self, key: str) -> Any:
        return self._results[key]

    def add(self, key: str, result: Any) -> None:
        """Add a result; it is in the file when this returns."""
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"key": key, "result": result}) + "\n")
        self._results[key] = result
