"""Sizes a network for many boards, several at a time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from typing import Any

from lbq_hw import boards
from lbq_hw.boards.clocks import ClockError
from lbq_hw.network import Network
from lbq_hw.sizing import Refusal, SizedCore, attempt
from lbq_hw.sizing.activity import Activity

Found = dict[str, SizedCore | Refusal]
"""By the name of the board."""


def survey(
    network: Network,
    *,
    busy: Activity,
    options: Mapping[str, Any],
    workers: int | None = None,
    done: Callable[[int], object] = int,
) -> Found:
    """Every board with a fabric, sorted. `options` are those of `sizing.attempt`; `done` is called
    with the number of boards in each group that is finished.

    Boards with the same device share intermediate results, so one process sizes them in turn.
    """
    groups: dict[object, list[str]] = defaultdict(list)
    for name in boards.fabrics():
        board = boards.find(name)
        groups[board.device[:7], board.chip and board.chip.data_bits].append(name)
    count = min(workers or os.cpu_count() or 1, len(groups))
    work = [(network, busy, dict(options), names) for names in groups.values()]
    found: Found = {}
    with ExitStack() as stack:
        every = map
        if count > 1:
            pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"))
            every = stack.enter_context(pool).map
        for group in every(_sized, work):
            found |= group
            done(len(group))
    return dict(sorted(found.items()))


def _sized(work: tuple[Network, Activity, dict[str, Any], Sequence[str]]) -> Found:
    network, busy, options, names = work
    found: Found = {}
    for name in names:
        try:
            found[name] = attempt(network, boards.find(name), busy=busy, **options)
        except ClockError as error:
            found[name] = Refusal([str(error)])
    return found
