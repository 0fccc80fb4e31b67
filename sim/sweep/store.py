"""Results of a sweep as JSON lines, so that a sweep can be stopped and resumed.

The first line identifies the sweep. Each other line is the result of a shape.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lbq_hw.sim.sweep.shapes import Result


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The parameters on which results depend; `sources` is a digest of the project's files."""

    seed: int
    shapes: int
    networks: int
    sources: str


class Store:
    """A file of results, to which new ones are added."""

    def __init__(self, path: Path, sweep: Sweep) -> None:
        self._path = path
        self.results: dict[int, Result] = {}
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(asdict(sweep)) + "\n", encoding="utf-8")
            return
        text = path.read_text(encoding="utf-8")
        kept = text[: text.rfind("\n") + 1]  # drops a last line that was cut off
        lines = [_object(line, path) for line in kept.splitlines()]
        if not lines or lines[0] != asdict(sweep):
            raise ValueError(
                f"{path} has the results of another sweep, or of other sources: choose another "
                "--out, or remove it"
            )
        if kept != text:
            path.write_text(kept, encoding="utf-8")
        for line in lines[1:]:
            result = Result(**line)
            if result.difference is None:  # shapes with a difference are run again
                self.results[result.number] = result

    def add(self, result: Result) -> None:
        """Add a result; it is in the file when this returns."""
        line = {f.name: getattr(result, f.name) for f in fields(result) if f.name != "case"}
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        self.results[result.number] = result


def _object(line: str, path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError):
        raise ValueError(f"{path} is not a file of results: {line[:40]!r}") from None
