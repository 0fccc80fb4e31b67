"""Threads over blocks of work, as many as BLAS would use for itself.

BLAS can parallelise only matrix products, which are about half of the work. So each thread executes
all the work of its blocks, and BLAS is limited to one thread meanwhile. A user's limit for BLAS
(``OPENBLAS_NUM_THREADS``, threadpoolctl) also limits these threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@dataclass(frozen=True, kw_only=True)
class Workers:
    """`count` threads; one is the caller's own, and then BLAS may use threads of its own."""

    count: int
    pool: ThreadPoolExecutor | None

    def run(self, work: Callable[[Any], object], blocks: Iterable[Any]) -> None:
        """Work on every block, in any order, and raise what any of them raised."""
        for _ in (map if self.pool is None else self.pool.map)(work, blocks):
            pass


@contextmanager
def workers(blocks: int) -> Iterator[Workers]:
    """Threads for work of this many `blocks`; one thread if there are fewer blocks than threads."""
    controller = _controller()
    count = max((info["num_threads"] for info in controller.info()), default=1)
    if not 1 < count <= blocks:
        yield Workers(count=1, pool=None)
        return
    with controller.limit(limits=1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        yield Workers(count=count, pool=pool)


@cache
def _controller() -> ThreadpoolController:
    """Finds the BLAS that numpy has loaded, so it must not be asked before that."""
    return ThreadpoolController().select(user_api="blas")
