"""The effort of a measurement, and times from the device's clock, without the host's work."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The effort of a measurement: rounds and calls per round, after a warm-up that compiles."""

    timesteps: tuple[int, ...] = (1, 2, 4)
    images: int = 50_000
    warmup: int = 30
    rounds: int = 9
    calls: int = 30
    captured: int = 10  # kernels in a CUDA graph


QUICK = Effort(timesteps=(2,), images=5_000, warmup=10, rounds=3, calls=10)


def time_calls(call: Callable[[], object], effort: Effort) -> list[float]:
    """Milliseconds per call, for each round."""
    for _ in range(effort.warmup):
        call()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(effort.rounds + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        for _ in range(effort.calls):
            call()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / effort.calls for a, b in itertools.pairwise(marks)]


def captured(call: Callable[[], object], times: int) -> Callable[[], object]:
    """A number of calls as one CUDA graph, so that the host's launches are not timed."""
    call()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            call()
    return graph.replay
