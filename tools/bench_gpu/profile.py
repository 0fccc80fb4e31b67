"""The time of a training step by kind of its GPU kernels."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.autograd import DeviceType  # pyright: ignore[reportPrivateImportUsage]
from torch.profiler import ProfilerActivity, profile

from tools.bench_gpu.clock import Effort, time_calls
from tools.bench_gpu.steps import ANN, Setting, Variant

TIMESTEPS = (2, 4)
OTHER = "other"
# The kind of a kernel is the first one whose pattern matches its name. Inductor names a kernel
# after everything that it fuses, so a name with "convolution" need not be a convolution.
KINDS = {
    # These include norms that are fused with neurons.
    "neurons (own kernels)": r"^(moments|(long_)?(forward|backward))_kernel",
    "optimizer": r"multi_tensor|foreach|^triton_for_",
    "norms and pointwise (Inductor)": r"^triton_",
    "convolutions, to weights": r"wgrad",
    "convolutions, to inputs": r"dgrad",
    "convolutions, forward": r"fprop|conv|implicit_gemm",
    "matrix products": r"gemm|gemv|cutlass|nvjet|splitk",
}


def kind_of(kernel: str) -> str:
    """The kind of a kernel, from its name."""
    name = kernel.lower()
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, name)), OTHER)


def by_kind(kernels: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Milliseconds per step for each kind that occurs, in the order of `KINDS`."""
    sums: defaultdict[str, float] = defaultdict(float)
    for row in kernels:
        sums[kind_of(row["kernel"])] += row["ms"]
    return {kind: sums[kind] for kind in (*KINDS, OTHER) if kind in sums}


def by_kernel(events: Iterable[Any], calls: int) -> list[dict[str, Any]]:
    """The kernels in a profiler's events, the longest first: launches and time per call."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for event in events:
        # An annotation covers kernels that have events of their own.
        if event.device_type == DeviceType.CUDA and not event.is_user_annotation:
            times[event.name].append(event.device_time)
    rows = [
        {"kernel": name, "calls": len(us) / calls, "ms": sum(us) / calls / 1000}
        for name, us in times.items()
    ]
    return sorted(rows, key=lambda row: -row["ms"])


def kernels_of(call: Callable[[], object], calls: int) -> list[dict[str, Any]]:
    """The kernels of a call; it must have run before, so that nothing is compiled."""
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    return by_kernel(seen.events() or (), calls)


def measure_profile(effort: Effort, device: torch.device) -> list[dict[str, Any]]:
    """One row per network, the ANN first; ``ms`` is the time of its step without the profiler."""
    setting = Setting.of(effort, device)
    chosen = [t for t in TIMESTEPS if t in effort.timesteps]
    rows = []
    for variant in (ANN, *(Variant(kind="lbq", timesteps=t, fused=True) for t in chosen)):
        training = setting.training(variant)
        ms = statistics.median(time_calls(training, effort))
        kernels = kernels_of(training, effort.calls)
        name, timesteps = variant.name, variant.timesteps
        row = {"name": name, "timesteps": timesteps, "ms": ms}
        rows.append(row | {"kernels": kernels, "kinds": by_kind(kernels)})
    return rows


def table(profiled: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The table of `measure_profile`, headings and lines: kinds of kernels, their sum, whole steps.

    A network has its milliseconds per step and their ratio to the first network's.
    """
    first, *others = profiled
    found = {kind for row in profiled for kind in row["kinds"]}

    def line(title: str, of: Callable[[Mapping[str, Any]], float]) -> list[str]:
        cells = [title, f"{of(first):.2f}"]
        for row in others:
            cells += [f"{of(row):.2f}", f"{of(row) / of(first):.2f}" if of(first) else "-"]
        return cells

    headings = ["", f"{first['name']}, ms"]
    for row in others:
        headings += [f"{row['name']}, ms", "of ANN"]
    lines = [
        line(kind, lambda row, kind=kind: row["kinds"].get(kind, 0.0))
        for kind in (*KINDS, OTHER)
        if kind in found
    ]
    lines.append(line("all kernels", lambda row: sum(row["kinds"].values())))
    lines.append(line("step", lambda row: row["ms"]))
    return headings, lines
