"""Pooling windows, read from pools in any of torch's spellings."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from lbq_hw.network import Window

_MAX_POOL = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
_AVG_POOL = (
    *("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"),
    "divisor_override",
)


def pair(value: Any) -> tuple[int, int]:
    """An option of a 2-d layer, given for both axes or for each."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def padding(conv: nn.Conv2d) -> tuple[int, int] | None:
    """A convolution's padding in pixels; None where it differs from side to side."""
    if not isinstance(conv.padding, str):
        return pair(conv.padding)
    if conv.padding == "valid":
        return (0, 0)
    height, width = pair(conv.kernel_size)
    return ((height - 1) // 2, (width - 1) // 2) if height % 2 and width % 2 else None


def of(pool: nn.MaxPool2d | nn.AvgPool2d) -> Window:
    return Window(
        kernel=pair(pool.kernel_size), stride=pair(pool.stride), padding=pair(pool.padding)
    )


def _options(node: fx.Node, names: tuple[str, ...]) -> dict[str, Any]:
    return dict(zip(names, node.args[1:], strict=False)) | dict(node.kwargs)


def max_pool(node: fx.Node) -> nn.MaxPool2d | None:
    """The layer that a functional max-pool stands for; None where its window is computed."""
    options = _options(node, _MAX_POOL)
    if any(isinstance(value, fx.Node) for value in options.values()):
        return None
    return nn.MaxPool2d(**options)


def divisor(node: fx.Node, pool: nn.Module | None) -> int | None:
    """What a pool of torch's that is told so divides sums by; None for an average."""
    if node.target is F.avg_pool2d:
        pool = nn.AvgPool2d(**_options(node, _AVG_POOL))
    return pool.divisor_override if isinstance(pool, nn.AvgPool2d) else None


def average(
    node: fx.Node, before: tuple[int, ...], after: tuple[int, ...], pool: nn.Module | None
) -> Window | None:
    """The window of an average over shapes before -> after; None where it has no integer form."""
    if len(before) != 4:
        return None
    height, width = before[2:]
    if node.target in (torch.mean, "mean"):
        axes: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        whole = isinstance(axes, tuple | list) and sorted(axis % 4 for axis in axes) == [2, 3]
        return Window(kernel=(height, width), stride=(height, width)) if whole else None
    if node.target is F.avg_pool2d:
        pool = nn.AvgPool2d(**_options(node, _AVG_POOL))
    if isinstance(pool, nn.AvgPool2d):
        inexact = pair(pool.padding) != (0, 0) and not pool.count_include_pad
        return None if pool.ceil_mode or inexact else of(pool)
    rows, columns = after[2:]  # adaptive: equal windows only
    if height % rows or width % columns:
        return None
    kernel = (height // rows, width // columns)
    return Window(kernel=kernel, stride=kernel)
