"""Finds the components of the core in all its modules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

from amaranth.lib import wiring

from lbq_hw import core
from lbq_hw.diagram.drawing import Drawing


def components() -> dict[str, type[wiring.Component]]:
    """Every component of `lbq_hw.core` by class name, sorted."""
    found = {}
    for module in pkgutil.walk_packages(core.__path__, f"{core.__name__}."):
        for name, kind in vars(importlib.import_module(module.name)).items():
            own = isinstance(kind, type) and kind.__module__ == module.name
            if own and issubclass(kind, wiring.Component):
                found[name] = kind
    return dict(sorted(found.items()))


def file_of(kind: type) -> str:
    """The file of a class, relative to the project's folder."""
    root = Path(core.__path__[0]).parents[1]
    return Path(inspect.getfile(kind)).relative_to(root).as_posix()


def headline(kind: type) -> str:
    """The first sentence of a class's docstring, on one line."""
    paragraph = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    sentence, dot, _ = " ".join(paragraph.split()).partition(". ")
    return sentence + dot.rstrip()


def table(drawing: Drawing) -> str:
    """The blocks of a drawing and their parts, each with its file and what it does."""
    known = components()

    def row(name: str, inside: str = "") -> str:
        kind = known[name]
        return f"| [`{name}`](../{file_of(kind)}) | {inside} | {headline(kind)} |"

    lines = ["| component | inside | what it does |", "|---|---|---|"]
    lines += [row(frame.name) for frame in drawing.frames]
    for block in drawing.blocks:
        lines += [row(block.name), *(row(part, f"`{block.name}`") for part in block.parts)]
    return "\n".join(lines) + "\n"
