"""Checks of a NIR file before its graph is read: links, sizes and numbers."""

from __future__ import annotations

from typing import Any

import h5py
import nir
import numpy as np

from lbq_hw.train.graph import RefusalError

MOST_BYTES = 1 << 31
"""The most bytes that all arrays of a file may have together."""
MOST_NESTED = 16
"""The deepest nesting of groups; a graph needs four."""
_PADDING = ("same", "valid")
_NEURON = ("tau", "tau_mem", "tau_syn", "r", "v_leak", "v_threshold", "v_reset", "w_in")
_WEIGHTS = ("weight", "bias")
_LEAST = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}
_DIMENSIONS = ("start_dim", "end_dim")
_NUMBERS = (*_NEURON, *_WEIGHTS, *_LEAST, *_DIMENSIONS)


def file(group: h5py.Group) -> None:
    """ValueError if reading would not end or would fill the memory, or if numbers are text."""
    _walk(group, 0)


def _walk(group: h5py.Group, depth: int) -> int:
    """The bytes of all arrays that a group declares."""
    if depth > MOST_NESTED:
        raise ValueError(f"its groups are nested more than {MOST_NESTED} deep")
    total = 0
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{group.name}/{name} is a link to another place")
        item = group[name]
        if isinstance(item, h5py.Group):
            total += _walk(item, depth + 1)
        elif isinstance(item, h5py.Dataset):
            total += (item.size or 0) * item.dtype.itemsize
            if name in _NUMBERS and name != "padding" and item.dtype.kind in "OSU":
                raise ValueError(f"{item.name} has no numbers")
        if total > MOST_BYTES:
            raise ValueError(f"its arrays take more than {MOST_BYTES >> 30} GiB")
    return total


def node(one: nir.NIRNode) -> None:
    """RefusalError if a field of a node is not a number, or out of its range."""
    for name in _NUMBERS:
        value = getattr(one, name, None)
        if value is not None and not (name == "padding" and _text(value) in _PADDING):
            _number(name, np.asarray(value))


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else ""


def _number(name: str, value: np.ndarray[Any, Any]) -> None:
    if value.dtype.kind not in "biuf":
        kind = "complex numbers" if value.dtype.kind == "c" else "no numbers"
        raise RefusalError(f"its {name} has {kind}", "write real numbers")
    if value.size == 0:
        raise RefusalError(f"its {name} is empty", "write its values")
    if not np.isfinite(value).all():
        raise RefusalError(f"its {name} must be finite, and some values are not", "train it again")
    if name in _LEAST or name in _DIMENSIONS:
        least = _LEAST.get(name, -8)
        good = value.size <= 2 and value.ndim <= 1 and (value == np.rint(value)).all()
        if not good or value.min() < least or value.max() > 4096:
            raise RefusalError(
                f"its {name} is {value.tolist()!r}", f"use whole numbers from {least} to 4096"
            )


def weight(values: Any, bias: Any, axes: int) -> None:
    """RefusalError if weights do not have `axes` axes, or a bias not one number per output."""
    shape = np.shape(values)
    if len(shape) != axes:
        what = "(out, in)" if axes == 2 else "(out, in, height, width)"
        raise RefusalError(f"its weights have {len(shape)} axes", f"use {axes}, {what}")
    if bias is not None and np.shape(bias) != shape[:1]:
        raise RefusalError(
            f"its bias has the shape {np.shape(bias)}, and its weights {shape}",
            "use one bias per output",
        )
