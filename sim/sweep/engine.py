"""Where the jobs of a sweep run: `lbq_hw.engine`, with the sources that results depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from lbq_hw import engine
from lbq_hw.engine import VersionError

__all__ = ["SOURCES", "VersionError", "results", "sources"]

Job = TypeVar("Job")
Done = TypeVar("Done")
SOURCES = (
    "chips", "compiler", "core", "cycles", "golden", "host", "isa", "network", "sim", "streaming",
)  # fmt: skip
"""Parts of the project that a result depends on."""


def sources() -> str:
    """A digest of `SOURCES`."""
    return engine.sources(SOURCES)


def results(
    work: Callable[[Job], Done], jobs: Sequence[Job], *, workers: int, scheduler: str | None = None
) -> Iterator[Done]:
    """As `engine.results`."""
    return engine.results(work, jobs, parts=SOURCES, workers=workers, scheduler=scheduler)
