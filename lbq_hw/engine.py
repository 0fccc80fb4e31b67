"""Where jobs run: in this process, on its machine's processors, or on a cluster.

Dask's `distributed` hands out the jobs. It is imported only where it is needed.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import lbq_hw
from lbq_hw.flow.inputs import sources_digest

if TYPE_CHECKING:
    from distributed import Client

Job = TypeVar("Job")
Done = TypeVar("Done")


class VersionError(RuntimeError):
    """A worker has different sources than the process that sends it jobs."""


@cache
def sources(parts: tuple[str, ...]) -> str:
    """A digest of parts of the project: its packages and files, by their names in `lbq_hw`."""
    root = Path(lbq_hw.__file__).parent
    digests = "".join(sources_digest((root / part).resolve()) for part in parts)
    return hashlib.sha256(digests.encode()).hexdigest()[:16]


def results(
    work: Callable[[Job], Done],
    jobs: Sequence[Job],
    *,
    parts: tuple[str, ...],
    workers: int,
    scheduler: str | None = None,
) -> Iterator[Done]:
    """Yield the result of `work` for each job as soon as it is finished.

    The work depends on these `parts` of the project, which must be the same for all workers.
    `workers`: processes on this machine; with 1, and without `scheduler`, the jobs run in this one.
    `scheduler`: the address of a Dask scheduler, whose workers have this project installed.
    """
    if workers == 1 and scheduler is None:
        yield from map(work, jobs)
        return
    with _client(workers, scheduler) as client, client.get_executor(pure=False) as executor:
        waiting = [executor.submit(_same, sources(parts), parts, work, job) for job in jobs]
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            for job in waiting:
                job.cancel()


def _same(wanted: str, parts: tuple[str, ...], work: Callable[[Job], Done], job: Job) -> Done:
    """Run a job on a worker that has the same sources."""
    if (found := sources(parts)) != wanted:
        raise VersionError(
            f"a worker has another version of the project ({found}, not {wanted}): install the "
            "same on all machines"
        )
    return work(job)


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Client]:
    from distributed import Client, LocalCluster

    if scheduler is not None:
        with Client(scheduler, timeout="10s") as client:
            yield client
        return
    # Errors of jobs come with their results; what is logged is how busy the machine is.
    options: dict[str, Any] = {"threads_per_worker": 1, "memory_limit": 0}
    options |= {"silence_logs": logging.CRITICAL}
    # Dask opens a port for its web pages in any case. It is any free one, so that several clusters
    # can run on one machine.
    options["scheduler_kwargs"] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        yield client
