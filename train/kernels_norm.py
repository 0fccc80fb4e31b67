"""Batch norm, residual sum and neuron as one pair of Triton kernels: what a training step moves.

A neuron after a batch norm sees, with the batch's statistics of each channel::

    I[t] = (x[t] - mean) * (weight * invstd) + bias     and, where a second path y enters it,
           + y[t] * gain                                burst levels of another neuron
           + (y[t] - mean') * (weight' * invstd') + bias'           a second norm

and then what :mod:`train.kernels` computes, in fp32, each operation rounded as written. No current
is ever written: the forward pass reads x and y and writes the levels, the backward pass reads x, y
and the gradient, makes the current anew, and writes dL/dI with the sums over the batch that the
norms' gradients need. What remains is a few numbers a channel and two pointwise products, which are
plain torch for ``torch.compile`` to fuse. A static x has no time axis, and is read once.

Tensors are channels-last with a power of two of channels, so that the channel of a lane is the same
in each block: sums over the batch stay in registers, and leave as one partial sum a program.
Nothing is atomic, a run repeats exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from train.kernels import DTYPES, INTERPRETED, MAX_TIMESTEPS, OPTIONS, triton
from train.kernels_norm_jit import backward_kernel, forward_kernel, moments_kernel

if TYPE_CHECKING:
    from train.recurrence import Quantizer

MAX_CHANNELS = 1024
PROGRAMS = 528  # that write partial sums: four for each processor of an H100 or H200
BLOCKS = 8  # a program of the forward pass: they share the loads of what belongs to a channel
UNROLL = 4  # loads in flight of the statistics
LAST = torch.channels_last


def available(x: Tensor, y: Tensor | None, timesteps: int) -> bool:
    """Whether the functions below take these inputs (on the CPU: in Triton's interpreter)."""
    if triton is None or not (x.is_cuda or INTERPRETED) or x.dim() != 4:
        return False
    channels = x.shape[1]
    return (
        channels <= MAX_CHANNELS
        and channels & (channels - 1) == 0
        and all(each.dtype in DTYPES for each in (x, y) if each is not None)
        and timesteps <= MAX_TIMESTEPS
        and x.numel() > channels
    )


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of each channel in fp32, without a gradient.

    Sums are of the distance to the channel's first value, which keeps what a large mean would lose.
    """
    x = x.detach().contiguous(memory_format=LAST)
    first, second = _moments(x).sum(0) / (x.numel() // x.shape[1])
    return first + x[0, :, 0, 0].float(), (second - first * first).clamp_min(0.0)


def recurrence(
    x: Tensor,
    x_stats: Tensor,
    x_weight: Tensor,
    x_bias: Tensor,
    y: Tensor | None,
    y_stats: Tensor | None,
    y_weight: Tensor | None,
    y_bias: Tensor | None,
    gamma: Tensor,
    lam: Tensor | None,
    *,
    static: bool,
    timesteps: int,
    beta: float,
    alpha: float,
    quantizer: Quantizer,
    emit_levels: bool,
) -> Tensor:
    """The neurons' output ``(T*B, C, H, W)``, with the gradients of statistics made of x and y.

    Statistics are ``(2, C)``, mean and invstd. A second path without them is levels, its weight the
    gain, whose gradient is not made. ``static``: x is ``(B, C, H, W)`` and meets all timesteps.
    """
    return _forward(
        x.contiguous(memory_format=LAST),
        x_stats,
        x_weight,
        x_bias,
        None if y is None else y.contiguous(memory_format=LAST),
        y_stats,
        y_weight,
        y_bias,
        static,
        gamma.float(),
        None if lam is None else lam.float(),
        timesteps,
        beta,
        alpha,
        emit_levels,
        quantizer.capacity,
        quantizer.signed,
        quantizer.surrogate,
        quantizer.low,
        quantizer.high,
        quantizer.sharpness,
    )


def _tile(timesteps: int, channels: int) -> tuple[int, int]:
    """Neurons a block and its warps: what a thread holds over all timesteps must fit registers."""
    each = 8 if timesteps <= 2 else 4 if timesteps <= 8 else 2
    block = max(128 * each, channels)
    return block, block // (32 * each)


def _programs(blocks: int) -> tuple[int, int]:
    """Programs that write partial sums, and blocks a program."""
    programs = min(PROGRAMS, blocks)
    return programs, triton.cdiv(blocks, programs)


def _second(y: Tensor | None, y_stats: Tensor | None) -> str:
    return "none" if y is None else "levels" if y_stats is None else "norm"


_INPUTS = (
    "Tensor x, Tensor x_stats, Tensor x_weight, Tensor x_bias, Tensor? y, Tensor? y_stats,"
    f" Tensor? y_weight, Tensor? y_bias, bool static, {OPTIONS}"
)


def _stages(x: Tensor) -> int:
    """Blocks being fetched or computed, as many as fit shared memory."""
    return 3 if x.element_size() == 2 else 1


def _moments_programs(x: Tensor) -> tuple[int, int, int]:
    block, _ = _tile(1, x.shape[1])
    return block, *_programs(-(-x.numel() // (block * UNROLL)))


@torch.library.custom_op("lbq::moments", mutates_args=(), schema="(Tensor x) -> Tensor")
def _moments(x: Tensor) -> Tensor:
    """Partial sums ``(programs, 2, C)`` of the distance to the first value, and of its square."""
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


@_moments.register_fake
def _(x: Tensor) -> Tensor:
    _, programs, _ = _moments_programs(x)
    return x.new_empty((programs, 2, x.shape[1]), dtype=torch.float32)


@torch.library.custom_op("lbq::norm_recurrence", mutates_args=(), schema=f"({_INPUTS}) -> Tensor")
def _forward(
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


@_forward.register_fake
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
def _backward(
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
    """Of the kernel: the gradient of the current, summed over T where static; partial sums
    ``(programs, 2 or 3, C)`` by channel; and those of gamma and lam, ``(2, programs)``.
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
            maxnreg=None if second == "norm" else 128,  # so that these four fit
            enable_fp_fusion=False,
        )
    return grad_current, channel_sums, sums


@_backward.register_fake
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


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    *first, ctx.static, gamma, lam = inputs[:11]
    ctx.options = inputs[11:]
    ctx.save_for_backward(*first, gamma, lam)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    *paths, gamma, lam = ctx.saved_tensors
    x, x_stats, x_weight, _, y, y_stats, y_weight, _ = paths
    grad = grad.contiguous(memory_format=LAST)
    grad_current, channel_sums, sums = _backward(grad, *paths, ctx.static, gamma, lam, *ctx.options)
    emit_levels = ctx.options[3]
    unit = gamma.reciprocal() if emit_levels else torch.ones_like(gamma)
    by_bias, *by_distance = channel_sums.sum(0) * unit
    grad_gamma, grad_lam = sums.sum(1) * torch.stack((unit, gamma * unit))
    grad_current = grad_current.float() * unit
    grad_x, grad_weight = _through_norm(grad_current, x, x_stats, x_weight, by_bias, by_distance[0])
    first, second = (grad_x, None, grad_weight, by_bias), (None,) * 4
    if y_stats is not None:
        grad_y, grad_weight = _through_norm(
            grad_current, y, y_stats, y_weight, by_bias, by_distance[1]
        )
        second = (grad_y, None, grad_weight, by_bias)
    elif y is not None:
        second = ((grad_current * y_weight).to(y.dtype), None, None, None)
    fixed = [None] * len(ctx.options)
    return *first, *second, None, grad_gamma, None if lam is None else grad_lam, *fixed


def _through_norm(
    grad: Tensor, x: Tensor, stats: Tensor, weight: Tensor, by_bias: Tensor, by_distance: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of a batch norm's input and weight; ``by_distance`` is the sum of
    ``grad * (x - mean)``.
    """
    mean, invstd = stats
    rows = x.numel() // x.shape[1]
    per_channel = (weight * invstd, by_bias / rows, mean, by_distance * invstd * invstd / rows)
    scale, offset, mean, slope = (each[:, None, None] for each in per_channel)
    grad_x = scale * (grad - offset - slope * (x - mean))
    return grad_x.to(x.dtype), by_distance * invstd


_forward.register_autograd(_differentiate, setup_context=_setup_context)
