"""Pooling windows and paddings, read from layers and functions in any of torch's spellings.

A layer along one axis, such as `nn.MaxPool1d`, counts as a layer over images of one row.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from lbq_hw.network import Shape, Window

_LINES = (nn.MaxPool1d, nn.AvgPool1d, nn.Conv1d)
_MAX_OPTIONS = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
_AVG_OPTIONS = (
    *("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"),
    "divisor_override",
)
_MAX: dict[Any, type[nn.Module]] = {F.max_pool2d: nn.MaxPool2d, F.max_pool1d: nn.MaxPool1d}
_AVG: dict[Any, type[nn.Module]] = {F.avg_pool2d: nn.AvgPool2d, F.avg_pool1d: nn.AvgPool1d}
_OVER_AXES = {torch.mean, "mean", torch.amax, "amax"}

Sides = tuple[tuple[int, int], tuple[int, int]]
"""Pixels above and below, left and right."""
NO_SIDES: Sides = ((0, 0), (0, 0))


def pair(value: Any) -> tuple[int, int]:
    """An option of a 2-d layer, given for both axes or for each."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def option(layer: nn.Module, name: str, along: int) -> tuple[int, int]:
    """An option of a layer, vertical and horizontal; for a layer of one axis, `along` is the
    vertical value.
    """
    value: Any = getattr(layer, name)
    if isinstance(layer, _LINES):
        return (along, value if isinstance(value, int) else value[0])
    return pair(value)


def image_shape(shape: tuple[int, ...]) -> Shape:
    """The shape of one image, from the shape of a tensor with a batch axis."""
    channels, *sides = shape[1:]
    height, width = (1,) * (2 - len(sides)) + tuple(sides)
    return channels, height, width


def conv_sides(conv: nn.Conv2d | nn.Conv1d) -> Sides:
    """The padding of a convolution; "same" may pad one side more than the other."""
    if not isinstance(conv.padding, str):
        vertical, horizontal = option(conv, "padding", 0)
        return ((vertical, vertical), (horizontal, horizontal))
    if conv.padding == "valid":
        return NO_SIDES
    kernel, dilation = option(conv, "kernel_size", 1), option(conv, "dilation", 1)
    rows, columns = (step * (size - 1) for size, step in zip(kernel, dilation, strict=True))
    return ((rows // 2, rows - rows // 2), (columns // 2, columns - columns // 2))


def zero_pad(node: fx.Node, layer: nn.Module | None) -> Sides | None:
    """The zero padding of a layer or function; None if it does something else."""
    if layer is not None:
        given: Any = getattr(layer, "padding", None)
        zeros = getattr(layer, "value", 0) == 0
    else:
        options = dict(zip(("pad", "mode", "value"), node.args[1:], strict=False)) | node.kwargs
        given = options["pad"]
        zeros = options.get("mode", "constant") == "constant" and not options.get("value")
    whole = isinstance(given, tuple | list) and all(type(p) is int and p >= 0 for p in given)
    if not zeros or not whole or len(given) not in (2, 4):
        return None
    left, right, *vertical = given
    top, bottom = vertical or (0, 0)
    return ((top, bottom), (left, right))


def of(pool: nn.Module, pad: Sides) -> Window | None:
    """The window of a pool over a padded image; None if one side is padded more than the other."""
    if any(before != after for before, after in pad):
        return None
    kernel, stride = option(pool, "kernel_size", 1), option(pool, "stride", 1)
    own = option(pool, "padding", 0)
    padding = (own[0] + pad[0][0], own[1] + pad[1][0])
    if any(pixels >= size for pixels, size in zip(padding, kernel, strict=True)):
        return None
    return Window(kernel=kernel, stride=stride, padding=padding)


def _options(node: fx.Node, names: tuple[str, ...]) -> dict[str, Any]:
    return dict(zip(names, node.args[1:], strict=False)) | dict(node.kwargs)


def _layer(
    node: fx.Node, pool: nn.Module | None, kinds: dict[Any, type[nn.Module]], names: tuple[str, ...]
) -> nn.Module | None:
    """The layer equal to a functional pool; None if the graph computes the window."""
    if node.target not in kinds:
        return pool
    options = _options(node, names)
    if any(isinstance(value, fx.Node) for value in options.values()):
        return None
    return kinds[node.target](**options)


def divisor(node: fx.Node, pool: nn.Module | None) -> int | None:
    """The `divisor_override` of a torch pool; None for a true average."""
    return getattr(_layer(node, pool, _AVG, _AVG_OPTIONS), "divisor_override", None)


def maximum(
    node: fx.Node,
    before: tuple[int, ...],
    after: tuple[int, ...],
    layer: nn.Module | None,
    pad: Sides,
) -> Window | None:
    """The window of a max-pool over shapes before -> after; None if it has no integer form."""
    pool = _layer(node, layer, _MAX, _MAX_OPTIONS)
    if isinstance(pool, nn.MaxPool2d | nn.MaxPool1d):
        plain = option(pool, "dilation", 1) == (1, 1)
        return of(pool, pad) if plain and not (pool.ceil_mode or pool.return_indices) else None
    if node.target in _MAX or pad != NO_SIDES or getattr(pool, "return_indices", False):
        return None
    return _equal(node, before, after)


def average(
    node: fx.Node,
    before: tuple[int, ...],
    after: tuple[int, ...],
    layer: nn.Module | None,
    pad: Sides,
) -> Window | None:
    """The window of an average over shapes before -> after; None if it has no integer form."""
    pool = _layer(node, layer, _AVG, _AVG_OPTIONS)
    if isinstance(pool, nn.AvgPool2d | nn.AvgPool1d):
        inexact = option(pool, "padding", 0) != (0, 0) and not pool.count_include_pad
        return None if pool.ceil_mode or inexact else of(pool, pad)
    if node.target in _AVG or pad != NO_SIDES:
        return None
    return _equal(node, before, after)


def _equal(node: fx.Node, before: tuple[int, ...], after: tuple[int, ...]) -> Window | None:
    """Equal windows that cover an image, for adaptive pools and for reductions over all axes."""
    if len(before) not in (3, 4):
        return None
    _, height, width = image_shape(before)
    rows = columns = 1
    if node.target in _OVER_AXES:
        axes: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        axes = [axes] if isinstance(axes, int) else axes
        whole = isinstance(axes, tuple | list)
        if not whole or sorted(axis % len(before) for axis in axes) != [*range(2, len(before))]:
            return None
    else:
        _, rows, columns = image_shape(after)
    if height % rows or width % columns:
        return None
    kernel = (height // rows, width // columns)
    return Window(kernel=kernel, stride=kernel)
