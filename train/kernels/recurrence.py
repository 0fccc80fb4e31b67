"""The recurrence of the neurons as a fused pair of Triton kernels, for CUDA tensors.

Each program owns a block of neurons and runs all their timesteps in registers: the forward pass
reads the current once and writes the output once; the backward pass reads current and gradient
and writes the gradient of the current once; it computes U, S and V again instead of saving them.
Each program writes one partial sum for the gradients of gamma and lam. There are no atomic
operations, so results are reproducible bit for bit.

Arithmetic is fp32, whatever the dtype of the tensors. Every operation on which a level depends is
rounded as in the definition, :mod:`train.neurons.recurrence` (no contraction into fused
multiply-adds), so levels are equal bit for bit. The kernels see memory and not shapes: time is
outermost in contiguous and in channels-last tensors, so both are used without a copy. The kernels
are custom operators of torch, opaque to ``torch.compile``; gamma and lam stay on the device, so
that a CUDA graph can hold them.

Triton comes with the CUDA builds of torch. Without it this module can be imported, and
:func:`available` is always False.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lbq_hw.train.kernels.recurrence_jit import INTERPRETED, backward_kernel, forward_kernel, triton

if TYPE_CHECKING:
    from lbq_hw.train.neurons.recurrence import Quantizer

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MAX_TIMESTEPS = 16
WARPS = 4


def available(current: Tensor) -> bool:
    """Whether there are kernels for this current (on the CPU: in Triton's interpreter).

    :func:`recurrence` takes up to `MAX_TIMESTEPS`, :mod:`train.kernels.continued` any number.
    """
    return (
        triton is not None
        and (current.is_cuda or INTERPRETED)
        and current.dtype in DTYPES
        and current.numel() > 0
    )


def recurrence(
    current: Tensor,
    gamma: Tensor,
    lam: Tensor | None,
    *,
    timesteps: int,
    beta: float,
    alpha: float,
    quantizer: Quantizer,
    emit_levels: bool,
) -> Tensor:
    """:func:`train.neurons.recurrence.recurrence` for fixed beta and alpha; keeps the layout."""
    return _forward(
        current.contiguous(memory_format=layout_of(current)),
        gamma.float(),
        None if lam is None else lam.float(),
        timesteps,
        beta,
        alpha,
        emit_levels,
        *quantizer.options,
    )


def layout_of(x: Tensor) -> torch.memory_format:
    """Channels-last if the tensor is, else contiguous: time is outermost in both."""
    last = torch.channels_last
    if x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=last):
        return last
    return torch.contiguous_format


def _block(timesteps: int) -> int:
    """Neurons per block. All timesteps of a thread's neurons must fit its registers, and the widest
    load takes 8 neurons in half precision.
    """
    return 32 * WARPS * (8 if timesteps <= 4 else 4 if timesteps <= 8 else 2)


def _blocks(current: Tensor) -> int:
    """Blocks per program of the backward pass. Several blocks share the cost of its sums. While one
    is computed, the next two are fetched, which fits shared memory in half precision.
    """
    return 4 if current.element_size() == 2 else 1


OPTIONS = (
    "Tensor gamma, Tensor? lam, int timesteps, float beta, float alpha, bool emit_levels,"
    " int capacity, bool signed, str surrogate, float low, float high, float sharpness"
)


@torch.library.custom_op(
    "lbq::recurrence", mutates_args=(), schema=f"(Tensor current, {OPTIONS}) -> Tensor"
)
def _forward(
    current: Tensor,
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
    out = torch.empty_like(current)
    size, block = current.numel() // timesteps, _block(timesteps)
    with torch.cuda.device_of(current):
        forward_kernel[(triton.cdiv(size, block),)](
            current,
            gamma,
            out,
            size,
            beta,
            alpha,
            float(capacity),
            TIMESTEPS=timesteps,
            SIGNED=signed,
            EMIT_LEVELS=emit_levels,
            BLOCK=block,
            num_warps=WARPS,
            enable_fp_fusion=False,
        )
    return out


@torch.library.custom_op(
    "lbq::recurrence_backward",
    mutates_args=(),
    schema=f"(Tensor grad, Tensor current, {OPTIONS}) -> (Tensor, Tensor)",
)
def _backward(
    grad: Tensor,
    current: Tensor,
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
) -> tuple[Tensor, Tensor]:
    """The gradient of the current, and the gradients of gamma and lam as one tensor of two."""
    grad_current = torch.empty_like(current)
    size, block, blocks = current.numel() // timesteps, _block(timesteps), _blocks(current)
    programs = triton.cdiv(size, block * blocks)
    sums = gamma.new_empty(2, programs)
    with torch.cuda.device_of(current):
        backward_kernel[(programs,)](
            current,
            grad.contiguous(memory_format=layout_of(current)),
            gamma,
            gamma if lam is None else lam,
            grad_current,
            sums,
            size,
            beta,
            alpha,
            float(capacity),
            low,
            high,
            sharpness,
            TIMESTEPS=timesteps,
            SIGNED=signed,
            EMIT_LEVELS=emit_levels,
            SURROGATE=surrogate,
            BLOCK=block,
            BLOCKS=blocks,
            num_warps=WARPS,
            enable_fp_fusion=False,
        )
    return grad_current, sums.sum(1)


@_forward.register_fake
def _(current: Tensor, *_options: Any) -> Tensor:
    return torch.empty_like(current)


@_backward.register_fake
def _(_grad: Tensor, current: Tensor, gamma: Tensor, *_options: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(current), gamma.new_empty(2)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    current, gamma, lam, *ctx.options = inputs
    ctx.save_for_backward(current, gamma, lam)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    current, gamma, lam = ctx.saved_tensors
    # An expanded gradient is laid out here, in sight of torch.compile, which does it much faster.
    grad = grad.contiguous(memory_format=layout_of(current))
    grad_current, (grad_gamma, grad_lam) = _backward(grad, current, gamma, lam, *ctx.options)
    fixed = [None] * len(ctx.options)
    return grad_current, grad_gamma, None if lam is None else grad_lam, *fixed


_forward.register_autograd(_differentiate, setup_context=_setup_context)
