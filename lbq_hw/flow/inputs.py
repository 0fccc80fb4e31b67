"""One digest of all inputs of a build step: when it changes, the step's product is made again.

Options, products of earlier steps, files of the project, versions of tools and libraries.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lbq_hw.flow.job import Job
from lbq_hw.tools import locate

ROOT = Path(__file__).parents[2]


def key_of(
    job: Job,
    *,
    name: str,
    options: Sequence[str],
    needs: Sequence[str],
    tools: Sequence[str],
    command: str | None,
    chosen: int | None,
    sources: Sequence[str],
    libraries: Sequence[str],
) -> str:
    """The digest for a step; the parameters are those of a `Step`, suffixes filled in.

    The board's bridge and price do not affect what is built, so they are left out. The steps that
    mention them depend on all sources, and for a user's board on its file.
    """
    said = job.board.facts()
    board = {name: value for name, value in said.items() if name not in ("bridge", "price")}
    facts = {
        "step": name,
        "board": board,
        "board file": digest(Path(job.board.file)) if job.board.file else None,
        "options": {option: _option(job, option) for option in options},
        "needs": {
            product: digest(job.folder / product)
            for product in needs
            if (job.folder / product).exists()
        },
        "tools": {tool: _tool(tool) for tool in tools},
        "command": command,
        "chosen": chosen,
        "sources": {source: sources_digest(ROOT / source) for source in sources},
        "python": platform.python_version(),
        "libraries": {library: _version(library) for library in libraries},
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def digest(path: Path) -> str:
    """SHA-256 of a file, or of a folder's files with their names."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return _digest_files(path.parent, files)


def sources_digest(path: Path) -> str:
    """The same for a part of the project. Left out are the networks of the zoo, since a build has a
    digest of its model, and Python's caches.
    """
    return _digest_files(path.parent, sorted(_sources(path)))


def _sources(path: Path) -> Iterator[Path]:
    for found in path.rglob("*") if path.is_dir() else (path,):
        if "__pycache__" not in found.parts and found.suffix != ".lbq":
            yield found


def _digest_files(root: Path, files: Sequence[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        if file.is_file():
            total.update(str(file.relative_to(root)).encode() + b"\0")
            with file.open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def _option(job: Job, name: str) -> Any:
    """An option's value; if it names files, also their state."""
    value = getattr(job.options, name)
    if name == "model":
        return digest(value)
    if name in ("data", "raw") and value is not None and Path(value).is_file():
        return [str(value), _state(Path(value))]
    if name == "data" and value is not None and Path(value).is_dir():
        inside = sorted(Path(value).rglob("*"))  # pictures lie in folders of folders
        return [str(value), [(str(path), *_state(path)) for path in inside]]
    return str(value)


def _tool(name: str) -> Any:
    """A tool's program and version; its file's size and time if it does not tell a version."""
    found = locate(name)
    if found is None:
        return None
    path = Path(found.path)
    return [path.name, found.version or _state(path)]


def _state(path: Path) -> list[int]:
    """The state of a file, or of the entries of a folder: it changes when they change."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def _version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None
