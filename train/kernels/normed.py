"""Batch norm, residual sum and neuron as one pair of Triton kernels, to save memory traffic.

A neuron after a batch norm sees, with the batch's statistics of each channel::

    I[t] = (x[t] - mean) * (weight * invstd) + bias     and, where a second path y enters it,
           + y[t] * gain                                burst levels of another neuron
           + (y[t] - mean') * (weight' * invstd') + bias'           a second norm

and then computes :mod:`train.kernels.recurrence` in fp32, each operation rounded as written.
The current is never written to memory. The forward pass reads x and y and writes the levels. The
backward pass reads x, y and the gradient, computes the current again, and writes dL/dI with the
sums over the batch that the norms' gradients need. The rest is a few numbers per channel and two
pointwise products in plain torch, which ``torch.compile`` fuses. A static x has no time axis, and
is read once.

Tensors are channels-last and their number of channels is a power of two, so that a lane has the
same channel in each block: sums over the batch stay in registers, and each program writes one
partial sum. There are no atomic operations, so results are reproducible bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lbq_hw.train.kernels.normed_ops import LAST, backward, forward, partial_moments
from lbq_hw.train.kernels.recurrence import DTYPES, MAX_TIMESTEPS
from lbq_hw.train.kernels.recurrence_jit import INTERPRETED, triton

if TYPE_CHECKING:
    from lbq_hw.train.neurons.recurrence import Quantizer

MAX_CHANNELS = 1024


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

    It sums the distances to the channel's first value, since a large mean would cancel digits.
    """
    x = x.detach().contiguous(memory_format=LAST)
    first, second = partial_moments(x).sum(0) / (x.numel() // x.shape[1])
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
    """The neurons' output ``(T*B, C, H, W)``; gradients flow through the statistics of x and y.

    Statistics are ``(2, C)``, mean and invstd. A second path without statistics carries levels, and
    its weight is the gain, which gets no gradient. ``static``: x is ``(B, C, H, W)``, the same at
    all timesteps.
    """
    return forward(
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
        *quantizer.options,
    )


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    *first, ctx.static, gamma, lam = inputs[:11]
    ctx.options = inputs[11:]
    ctx.save_for_backward(*first, gamma, lam)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    *paths, gamma, lam = ctx.saved_tensors
    x, x_stats, x_weight, _, y, y_stats, y_weight, _ = paths
    grad = grad.contiguous(memory_format=LAST)
    grad_current, channel_sums, sums = backward(grad, *paths, ctx.static, gamma, lam, *ctx.options)
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


forward.register_autograd(_differentiate, setup_context=_setup_context)
