"""The operators behind :mod:`train.kernels.normed`: launches of its kernels, and their shapes.

Tensors come from that module and are channels-last already. Each program writes one partial sum.
This file decides how many programs there are and which part of a tensor each program takes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lbq_hw.train.kernels.normed_jit import backward_kernel, forward_kernel, moments_kernel
from lbq_hw.train.kernels.recurrence import OPTIONS
from lbq_hw.train.kernels.recurrence_jit import triton

PROGRAMS = 528  # programs that write partial sums: four per multiprocessor of an H100 or H200
BLOCKS = 8  # blocks per program of the forward pass: they share the loads of a channel's numbers
UNROLL = 4  # loads in flight while the statistics are computed
LAST = torch.channels_last


def _tile(timesteps: int, channels: int) -> tuple[int, int]:
    """Neurons and warps per block; all timesteps of a thread's neurons must fit its registers."""
    each = 8 if timesteps <= 2 else 4 if timesteps <= 8 else 2
    block = max(128 * each, channels)
    return block, block // (32 * each)


def _programs(blocks: int) -> tuple[int, int]:
    """Programs that write partial sums, and blocks per program."""
    programs = min(PROGRAMS, blocks)
    return programs, triton.cdiv(blocks, programs)


def _second(y: Tensor | None, y_stats: Tensor | None) -> str:
    return "none" if y is None else "levels" if y_stats is None else "norm"


_INPUTS = (
    "Tensor x, Tensor x_stats, Tensor x_weight, Tensor x_bias, Tensor? y, Tensor? y_stats,"
    f" Tensor? y_weight, Tensor? y_bias, bool static, {OPTIONS}"
)


def _stages(x: Tensor) -> int:
    """Blocks that are fetched or computed at once, as many as fit shared memory."""
    return 3 if x.element_size() == 2 else 1


def _moments_programs(x: Tensor) -> tuple[int, int, int]:
    block, _ = _tile(1, x.shape[1])
    return block, *_programs(-(-x.numel() // (block * UNROLL)))


@torch.library.custom_op("lbq::moments", mutates_args=(), schema="(Tensor x) -> Tensor")
def partial_moments(x: Tensor) -> Tensor:
    """Partial sums ``(programs, 2, C)`` of the distance to the first value, and its square."""
    channels = x.shape[1]
    block, programs, blocks = _moments_programs(x)
    sums = x.new_empty((programs, 2, channels), dtype=torch.float32)
    with torch.cuda.device_of(x):
        moments_kernel[(programs,)](
            x,
            sums,
            x.numel(),
            CHANNELS=channels,
            UNROLL=UNROLL,
            BLOCK=block,
            BLOCKS=blocks,
            STAGES=_stages(x),
            num_warps=_tile(1, channels)[1],
        )
    return sums


@partial_moments.register_fake
def _(x: Tensor) -> Tensor:
    _, programs, _ = _moments_programs(x)
    return x.new_empty((programs, 2, x.shape[1]), dtype=torch.float32)


@torch.library.custom_op("lbq::norm_recurrence", mutates_args=(), schema=f"({_INPUTS}) -> Tensor")
def forward(
    x: Tensor,
    x_stats: Tensor,
    x_weight: Tensor,
    x_bias: Tensor,
    y: Tensor | None,
    y_stats: Tensor | None,
    y_weight: Tensor | None,
    y_bias: Tensor | None,
    static: bool,
    gamma: Tensor,
    _lam: Tensor | None,
    timesteps: int,
    beta: float,
    alpha: float,
    emit_levels: bool,
    capacity: int,
    signed: bool,
    *_curve: Any,
) -> Tensor:
    out = _output(x, timesteps if static else 1)
    size, channels = out.numel() // timesteps, x.shape[1]
    block, warps = _tile(timesteps, channels)
    with torch.cuda.device_of(x):
        forward_kernel[(triton.cdiv(size, block * BLOCKS),)](
            x,
            x_stats,
            x_weight,
            x_bias,
            x if y is None else y,
            x_stats if y_stats is None else y_stats,
            x_weight if y_weight is None else y_weight,
            x_bias if y_bias is None else y_bias,
            gamma,
            out,
            size,
            beta,
            alpha,
            float(capacity),
            CHANNELS=channels,
            TIMESTEPS=timesteps,
            STATIC=static,
            SECOND=_second(y, y_stats),
            SIGNED=signed,
            EMIT_LEVELS=emit_levels,
            BLOCK=block,
            BLOCKS=BLOCKS,
            STAGES=_stages(x),
            num_warps=warps,
            enable_fp_fusion=False,
        )
    return out


@forward.register_fake
def _(x: Tensor, *options: Any) -> Tensor:
    static, timesteps = options[7], options[10]
    return _output(x, timesteps if static else 1)


def _output(x: Tensor, repeated: int) -> Tensor:
    shape = (x.shape[0] * repeated, *x.shape[1:])
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=LAST)


@torch.library.custom_op(
    "lbq::norm_recurrence_backward",
    mutates_args=(),
    schema=f"(Tensor grad, {_INPUTS}) -> (Tensor, Tensor, Tensor)",
)
def backward(
    grad: Tensor,
    x: Tensor,
    x_stats: Tensor,
    x_weight: Tensor,
    x_bias: Tensor,
    y: Tensor | None,
    y_stats: Tensor | None,
    y_weight: Tensor | None,
    y_bias: Tensor | None,
    static: bool,
    gamma: Tensor,
    lam: Tensor | None,
    timesteps: int,
    beta: float,
    alpha: float,
    _emit_levels: bool,
    capacity: int,
    signed: bool,
    surrogate: str,
    low: float,
    high: float,
    sharpness: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The kernel's results: the gradient of the current, summed over T if static; partial sums
    ``(programs, 2 or 3, C)`` per channel; partial sums ``(2, programs)`` for gamma and lam.
    """
    second = _second(y, y_stats)
    grad_current, channel_sums, sums = _gradients(x, second, static, timesteps)
    channels, programs = x.shape[1], sums.shape[1]
    size = grad.numel() // timesteps
    block, warps = _tile(timesteps, channels)
    with torch.cuda.device_of(x):
        backward_kernel[(programs,)](
            grad,
            x,
            x_stats,
            x_weight,
            x_bias,
            x if y is None else y,
            x_stats if y_stats is None else y_stats,
            x_weight if y_weight is None else y_weight,
            x_bias if y_bias is None else y_bias,
            gamma,
            gamma if lam is None else lam,
            grad_current,
            channel_sums,
            sums,
            size,
            beta,
            alpha,
            float(capacity),
            low,
            high,
            sharpness,
            CHANNELS=channels,
            TIMESTEPS=timesteps,
            STATIC=static,
            SECOND=second,
            SIGNED=signed,
            SURROGATE=surrogate,
            BLOCK=block,
            BLOCKS=triton.cdiv(triton.cdiv(size, block), programs),
            STAGES=_stages(x),
            num_warps=warps,
            maxnreg=None if second == "norm" else 128,  # so that four programs fit
            enable_fp_fusion=False,
        )
    return grad_current, channel_sums, sums


@backward.register_fake
def _(_grad: Tensor, x: Tensor, *options: Any) -> tuple[Tensor, Tensor, Tensor]:
    y, y_stats, static, timesteps = options[3], options[4], options[7], options[10]
    return _gradients(x, _second(y, y_stats), static, timesteps)


def _gradients(
    x: Tensor, second: str, static: bool, timesteps: int
) -> tuple[Tensor, Tensor, Tensor]:
    channels = x.shape[1]
    size = x.numel() if static else x.numel() // timesteps
    block, _ = _tile(timesteps, channels)
    programs, _ = _programs(-(-size // block))
    shape = (programs, 3 if second == "norm" else 2, channels)
    sums = [x.new_empty(each, dtype=torch.float32) for each in (shape, (2, programs))]
    return _output(x, 1), sums[0], sums[1]
