"""``triton.language`` on torch tensors: a block of lanes is a tensor of one axis."""

from __future__ import annotations

import builtins
from typing import Any

import torch
from torch import Tensor

constexpr = Any
float32, int64, uint32 = torch.float32, torch.int64, torch.uint32
PROGRAM = [0, 1]  # its number, and how many there are


class PropagateNan:
    ALL = "all"


class Lanes(torch.Tensor):
    """A tensor that can be read as bits."""

    def to(self, dtype: torch.dtype, bitcast: bool = False) -> Lanes:
        if not bitcast:
            return super().to(dtype)
        if dtype == uint32:  # as 64-bit integers, of which torch knows all operations
            return self.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
        bits = torch.where(self >= 1 << 31, self - (1 << 32), self)
        return bits.to(torch.int32).view(dtype)


class Pointer:
    """An array in memory, whatever the tensor's shape, and the places that are meant in it."""

    def __init__(self, array: Tensor, at: Any = 0) -> None:
        self.array = array.detach().as_strided((array.numel(),), (1,))
        self.at = at

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.array, self.at + offset)


def lanes(x: Any, dtype: torch.dtype | None = None) -> Lanes:
    return torch.as_tensor(x, dtype=dtype).as_subclass(Lanes)


def load(pointer: Pointer, mask: Any = None, other: float = 0.0) -> Lanes:
    at = lanes(pointer.at, torch.int64)
    if mask is None:
        return lanes(pointer.array[at])
    read = pointer.array[torch.where(mask, at, 0)]
    return lanes(torch.where(mask, read, torch.tensor(other, dtype=read.dtype)))


def store(pointer: Pointer, value: Any, mask: Any = None) -> None:
    at = lanes(pointer.at, torch.int64)
    value = lanes(value).to(pointer.array.dtype).expand(at.shape)
    if mask is not None:
        at, value = at[mask], value[mask]
    pointer.array[at] = value


def program_id(axis: int) -> Lanes:
    assert axis == 0
    return lanes(PROGRAM[0])


def num_programs(axis: int) -> int:
    assert axis == 0
    return PROGRAM[1]


def arange(start: int, end: int) -> Lanes:
    assert (end - start) & (end - start - 1) == 0, "Triton takes powers of two alone"
    return lanes(torch.arange(start, end))


def zeros(shape: tuple[int, ...], dtype: torch.dtype) -> Lanes:
    return lanes(torch.zeros(shape, dtype=dtype))


def cast(x: Any, dtype: torch.dtype) -> Lanes:
    return lanes(x).to(dtype)


def static_range(*bounds: int) -> builtins.range:
    return builtins.range(*bounds)


def range(*bounds: int, num_stages: int = 1) -> builtins.range:  # noqa: ARG001
    return builtins.range(*bounds)


def where(condition: Any, x: Any, y: Any) -> Lanes:
    return lanes(torch.where(condition, x, y))


def fma(x: Any, y: Any, z: Any) -> Any:
    return x * y + z  # rounded twice: in sums alone, see `divide`


def div_rn(x: Any, y: Any) -> Any:
    return x / y


def clamp(x: Tensor, low: Any, high: Any, nan: str = "") -> Lanes:
    assert nan in ("", PropagateNan.ALL)
    return lanes(x.clamp(low, high))


def floor(x: Tensor) -> Lanes:
    return lanes(x.floor())


def abs(x: Tensor) -> Lanes:
    return lanes(x.abs())


def exp2(x: Tensor) -> Lanes:
    return lanes(x.exp2())


def sum(x: Tensor, axis: int | None = None) -> Lanes:
    return lanes(x.sum() if axis is None else x.sum(axis))


def reshape(x: Tensor, shape: tuple[int, ...]) -> Lanes:
    return lanes(x.reshape(shape))


def debug_barrier() -> None:
    """Programs run one after the other, and have one thread."""
