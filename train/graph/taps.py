"""Maps the weights of a layer to the kernel of its convolution in the integer network.

The integer network has only dense convolutions: all channels, no dilation, equal padding on both
sides. Every other layer becomes such a convolution with zeros among its weights:

    dilation            zeros between the taps
    groups, depthwise   zeros where an output does not read an input
    uneven padding      the wider padding on both sides, and zeros at the kernel's other end
    a line (Conv1d)     a kernel of one row
    a linear layer      a kernel that covers its input
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from lbq_hw.train.graph import Synapse
from lbq_hw.train.graph.windows import Sides, conv_sides, option

Array = NDArray[Any]


def stride(synapse: Synapse) -> tuple[int, int]:
    if isinstance(synapse.module, nn.Linear):
        return (1, 1)
    return option(synapse.module, "stride", 1)


def padding(synapse: Synapse) -> tuple[int, int]:
    """The padding of the integer network's convolution, equal on both sides."""
    if isinstance(synapse.module, nn.Linear):
        return (0, 0)
    vertical, horizontal = _sides(synapse)
    return (max(vertical), max(horizontal))


def kernel(synapse: Synapse, values: Array) -> Array:
    """Values in the shape of the layer's weights, as a kernel ``(out, in, rows, columns)``."""
    module = synapse.module
    if isinstance(module, nn.Linear):
        (top, bottom), (left, right) = synapse.levels.pad
        channels, height, width = synapse.levels.shape
        whole = values.reshape(len(values), channels, height, width)
        return whole[:, :, top : height - bottom, left : width - right]
    values = values.reshape(*values.shape[:2], *option(module, "kernel_size", 1))
    return _uneven(_dilated(_ungrouped(values, module.groups), synapse), synapse)


def values(synapse: Synapse, dense: Array, like: tuple[int, ...]) -> Array:
    """The inverse of `kernel`, for weights of the shape `like`; weights without a tap are 0."""
    count = int(np.prod(like))
    places = kernel(synapse, np.arange(1, count + 1).reshape(like))
    if places.shape != dense.shape:
        raise ValueError(f"a kernel must be of shape {places.shape}, not {dense.shape}")
    found = np.zeros(count + 1, dense.dtype)
    found[places] = dense
    return found[1:].reshape(like)


def _ungrouped(weight: Array, groups: int) -> Array:
    if groups == 1:
        return weight
    outputs, inputs, *sides = weight.shape
    dense = np.zeros((groups, outputs // groups, groups, inputs, *sides), weight.dtype)
    for group, part in enumerate(weight.reshape(groups, -1, inputs, *sides)):
        dense[group, :, group] = part
    return dense.reshape(outputs, groups * inputs, *sides)


def _dilated(weight: Array, synapse: Synapse) -> Array:
    rows, columns = option(synapse.module, "dilation", 1)
    if (rows, columns) == (1, 1):
        return weight
    height, width = weight.shape[2:]
    spread = np.zeros(
        (*weight.shape[:2], rows * (height - 1) + 1, columns * (width - 1) + 1), weight.dtype
    )
    spread[:, :, ::rows, ::columns] = weight
    return spread


def _uneven(weight: Array, synapse: Synapse) -> Array:
    """Zeros before the taps if fewer pixels are padded before than behind, and vice versa."""
    ends = [(max(0, after - before), max(0, before - after)) for before, after in _sides(synapse)]
    return np.pad(weight, ((0, 0), (0, 0), *ends)) if any(map(any, ends)) else weight


def _sides(synapse: Synapse) -> Sides:
    assert not isinstance(synapse.module, nn.Linear)
    own, more = conv_sides(synapse.module), synapse.levels.pad
    return (
        (own[0][0] + more[0][0], own[0][1] + more[0][1]),
        (own[1][0] + more[1][0], own[1][1] + more[1][1]),
    )
