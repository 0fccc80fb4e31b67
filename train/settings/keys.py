"""The keys of a configuration, for ``--help``: each with its default and its meaning.

The meaning is the comment after the field, so that it is written only once.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from dataclasses import dataclass
from typing import Any, get_type_hints

from lbq_hw.train.settings.config import Config

_FIELD = re.compile(r"^    (\w+): [^#\n]*(?:  # (.*))?$", re.M)


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key: its dotted `name`, its `default` in TOML, and its `meaning`.

    The default is None if the key must be given, and empty if it depends on another key.
    """

    name: str
    default: str | None
    meaning: str


def every(section: Any = Config, place: str = "") -> list[Key]:
    """All keys, in the order of the configuration."""
    meanings = dict(_FIELD.findall(inspect.getsource(section)))
    hints, found = get_type_hints(section), []
    for field in dataclasses.fields(section):
        name = f"{place}{field.name}"
        if dataclasses.is_dataclass(hints[field.name]):
            found += every(hints[field.name], f"{name}.")
        else:
            found.append(Key(name=name, default=_default(field), meaning=meanings[field.name]))
    return found


def listing() -> str:
    """All keys as lines, with an empty line between sections."""
    lines = [
        "keys of a configuration, for files and for --set; a key without a default takes",
        "the default of the dataset, the model or the kind of neuron:",
        "",
    ]
    section = ""
    for key in every():
        if (before := key.name.rpartition(".")[0]) != section:
            section = before
            lines.append("")
        default = {None: " (needed)", "": ""}.get(key.default, f" = {key.default}")
        lines.append(f"  {key.name + default:32} {key.meaning}")
    return "\n".join([*lines, ""])


def _default(field: dataclasses.Field[Any]) -> str | None:
    if field.default_factory is not dataclasses.MISSING:
        return json.dumps(field.default_factory())
    if field.default is dataclasses.MISSING:
        return None
    if field.default is None:
        return ""
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return json.dumps(value)
