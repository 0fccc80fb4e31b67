"""The recurrence over any number of timesteps, from given membranes, with the final membranes.

The kernels of :mod:`train.kernels.recurrence` hold all timesteps of a neuron in registers, which
limits them to `MAX_TIMESTEPS`. The kernels here loop over time. The forward pass still reads the
current once and writes the output once. The backward pass first runs forward and stores U / gamma
of each timestep, four bytes per neuron and timestep, then reads it while it runs backward. Both
take membranes and their gradients in and out, so that a sequence can be run in parts. Levels equal
the definition, :func:`train.neurons.recurrence.continued`, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lbq_hw.train.kernels.recurrence import OPTIONS, layout_of
from lbq_hw.train.kernels.recurrence_jit import long_backward_kernel, long_forward_kernel, triton

if TYPE_CHECKING:
    from lbq_hw.train.neurons.recurrence import Quantizer

WARPS = 4
BLOCK = 32 * WARPS * 2  # neurons: small, since long sequences come with few images


def continued(
    current: Tensor,
    v: Tensor | None,
    gamma: Tensor,
    lam: Tensor | None,
    *,
    timesteps: int,
    beta: float,
    alpha: float,
    quantizer: Quantizer,
    emit_levels: bool,
) -> tuple[Tensor, Tensor]:
    """Output, and the final membranes in fp32. ``v`` None starts from 0. Keeps the layout."""
    layout = layout_of(current)
    return _forward(
        current.contiguous(memory_format=layout),
        None if v is None else v.float().contiguous(memory_format=layout),
        gamma.float(),
        None if lam is None else lam.float(),
        timesteps,
        beta,
        alpha,
        emit_levels,
        *quantizer.options,
    )


def _membranes(current: Tensor, timesteps: int) -> Tensor:
    """An empty tensor for the membranes, in the order of the current's neurons."""
    shape = current.shape[0] // timesteps, *current.shape[1:]
    return torch.empty(
        shape, dtype=torch.float32, device=current.device, memory_format=layout_of(current)
    )


@torch.library.custom_op(
    "lbq::continued",
    mutates_args=(),
    schema=f"(Tensor current, Tensor? v, {OPTIONS}) -> (Tensor, Tensor)",
)
def _forward(
    current: Tensor,
    v: Tensor | None,
    gamma: Tensor,
    _lam: Tensor | None,
    timesteps: int,
    beta: float,
    alpha: float,
    emit_levels: bool,
    capacity: int,
    signed: bool,
    *_curve: Any,
) -> tuple[Tensor, Tensor]:
    out, left = torch.empty_like(current), _membranes(current, timesteps)
    size = left.numel()
    with torch.cuda.device_of(current):
        long_forward_kernel[(triton.cdiv(size, BLOCK),)](
            current,
            left if v is None else v,
            gamma,
            out,
            left,
            size,
            beta,
            alpha,
            float(capacity),
            TIMESTEPS=timesteps,
            GIVEN=v is not None,
            SIGNED=signed,
            EMIT_LEVELS=emit_levels,
            BLOCK=BLOCK,
            num_warps=WARPS,
            enable_fp_fusion=False,
        )
    return out, left


@torch.library.custom_op(
    "lbq::continued_backward",
    mutates_args=(),
    schema=(
        f"(Tensor grad, Tensor grad_left, Tensor current, Tensor? v, {OPTIONS})"
        " -> (Tensor, Tensor, Tensor)"
    ),
)
def _backward(
    grad: Tensor,
    grad_left: Tensor,
    current: Tensor,
    v: Tensor | None,
    gamma: Tensor,
    lam: Tensor | None,
    timesteps: int,
    beta: float,
    alpha: float,
    emit_levels: bool,
    capacity: int,
    signed: bool,
    surrogate: str,
    low: float,
    high: float,
    sharpness: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the current, of the initial membranes, and of gamma and lam in one tensor."""
    grad_current, grad_v = torch.empty_like(current), _membranes(current, timesteps)
    ratios = torch.empty_like(current, dtype=torch.float32)
    size = grad_v.numel()
    programs = triton.cdiv(size, BLOCK)
    sums = gamma.new_empty(2, programs)
    layout = layout_of(current)
    with torch.cuda.device_of(current):
        long_backward_kernel[(programs,)](
            current,
            grad_v if v is None else v,
            grad.contiguous(memory_format=layout),
            grad_left.contiguous(memory_format=layout),
            gamma,
            gamma if lam is None else lam,
            ratios,
            grad_current,
            grad_v,
            sums,
            size,
            beta,
            alpha,
            float(capacity),
            low,
            high,
            sharpness,
            TIMESTEPS=timesteps,
            GIVEN=v is not None,
            SIGNED=signed,
            EMIT_LEVELS=emit_levels,
            SURROGATE=surrogate,
            BLOCK=BLOCK,
            num_warps=WARPS,
            enable_fp_fusion=False,
        )
    return grad_current, grad_v, sums.sum(1)


@_forward.register_fake
def _(
    current: Tensor, _v: Tensor | None, _gamma: Tensor, _lam: Tensor | None, timesteps: int, *_: Any
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(current), _membranes(current, timesteps)


@_backward.register_fake
def _(
    _grad: Tensor,
    _grad_left: Tensor,
    current: Tensor,
    _v: Tensor | None,
    gamma: Tensor,
    _lam: Tensor | None,
    timesteps: int,
    *_: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(current), _membranes(current, timesteps), gamma.new_empty(2)


def _setup_context(
    ctx: Any,
    inputs: tuple[Any, ...],
    output: tuple[Tensor, Tensor],  # noqa: ARG001
) -> None:
    current, v, gamma, lam, *ctx.options = inputs
    ctx.save_for_backward(current, v, gamma, lam)


def _differentiate(ctx: Any, grad: Tensor, grad_left: Tensor) -> tuple[Any, ...]:
    current, v, gamma, lam = ctx.saved_tensors
    layout = layout_of(current)
    grad_current, grad_v, (grad_gamma, grad_lam) = _backward(
        grad.contiguous(memory_format=layout),
        grad_left.contiguous(memory_format=layout),
        *(current, v, gamma, lam),
        *ctx.options,
    )
    fixed = [None] * len(ctx.options)
    return (
        *(grad_current, None if v is None else grad_v),
        *(grad_gamma, None if lam is None else grad_lam),
        *fixed,
    )


_forward.register_autograd(_differentiate, setup_context=_setup_context)
