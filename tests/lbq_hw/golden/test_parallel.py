"""Threads over blocks: as many as BLAS has, none where blocks are few, and errors come through."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy  # noqa: F401 - whose BLAS is meant
import pytest
from threadpoolctl import threadpool_limits

from lbq_hw.golden import parallel
from lbq_hw.golden.parallel import workers


def blas_threads() -> int:
    return max(info["num_threads"] for info in parallel._controller().info())


@pytest.fixture(autouse=True)
def three_blas_threads() -> Iterator[None]:
    with threadpool_limits(3, user_api="blas"):
        yield


def test_as_many_workers_as_blas_had_threads() -> None:
    with workers(3) as team:
        assert team.count == 3
        assert blas_threads() == 1
    assert blas_threads() == 3


def test_one_worker_and_a_threaded_blas_for_few_blocks() -> None:
    with workers(2) as team:
        assert team.count == 1
        assert blas_threads() == 3


def test_a_limit_of_one_thread_is_kept() -> None:
    with threadpool_limits(1, user_api="blas"), workers(100) as team:
        assert team.count == 1


def test_every_block_is_worked_on_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=600)
    seen: list[int] = []

    def work(block: int) -> None:
        meeting.wait()
        seen.append(block)

    with workers(3) as team:
        team.run(work, range(3))
    assert sorted(seen) == [0, 1, 2]


@pytest.mark.parametrize("blocks", [1, 3])
def test_an_error_in_a_block_is_raised(blocks: int) -> None:
    def work(block: int) -> None:
        raise RuntimeError(f"block {block}")

    with workers(blocks) as team, pytest.raises(RuntimeError, match=r"^block 0$"):
        team.run(work, range(blocks))
    assert blas_threads() == 3
