"""Facts as JSON files, one per part, and back: ``timing.json`` holds `Facts.timing`.

Names are fixed; a part that is missing has no file. ``summary.json`` is made from the others and
is not read back. Unknown keys and values of a wrong kind are refused, with their place.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from lbq_hw import decode
from lbq_hw.report.facts import Facts
from lbq_hw.report.summary import summary

PARTS = tuple(field.name for field in fields(Facts))
MAX_BYTES = 1 << 24
"""The largest size of a JSON file in bytes."""
# Errors of code that computes with values which were read but make no sense.
NONSENSE = (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)


class ReportError(ValueError):
    """A folder without a report, or with a damaged report; the message is one sentence."""


def write(folder: Path, facts: Facts) -> None:
    """Write the JSON files; files of an earlier report that this report lacks are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        value = getattr(facts, part)
        path = folder / f"{part}.json"
        if value is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(_text(value), encoding="utf-8")
    (folder / "summary.json").write_text(_text(summary(facts)), encoding="utf-8")


def read(folder: Path) -> Facts:
    """The facts that `write` wrote; ReportError if there are none or they are damaged."""
    found: dict[str, Any] = {}
    hints = get_type_hints(Facts)
    for part in PARTS:
        path = folder / f"{part}.json"
        try:
            found[part] = decode.reader(hints[part])(load(path), part)
        except FileNotFoundError:
            continue
        except (ValueError, TypeError, OSError) as error:
            raise ReportError(f"{path} cannot be used: {str(error)[:300]}") from error
    if not found:
        raise ReportError(f"{folder} must be a folder with a report's JSON files")
    return Facts(**found)


def load(path: Path) -> Any:
    """The JSON of a file; ValueError if it is too large or too deep, or a number is not finite."""
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"a file of more than {MAX_BYTES} bytes")

    def refuse(text: str) -> Any:
        raise ValueError(f"numbers must be finite, not {text}")

    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None


def _text(value: Any) -> str:
    def plain(item: Any) -> Any:
        return asdict(item) if is_dataclass(item) and not isinstance(item, type) else item

    value = [plain(item) for item in value] if isinstance(value, tuple) else plain(value)
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
