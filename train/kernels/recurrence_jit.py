"""The Triton kernels behind :mod:`train.kernels.recurrence`, which describes what they compute.

:mod:`train.kernels.normed_jit` uses the same functions.

Triton comes with the CUDA builds of torch. Without it this module can be imported: `triton` is then
None, and the functions below are never called.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

triton: Any
tl: Any
try:
    triton = importlib.import_module("triton")
    tl = importlib.import_module("triton.language")
except ImportError:
    triton = tl = None

if TYPE_CHECKING:
    constexpr = Any
else:
    constexpr = getattr(tl, "constexpr", None)

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def jit(function: Any) -> Any:
    return function if triton is None else triton.jit(function)


@jit
def divide(u, gamma, inverse):
    """``u / gamma``, correctly rounded; ``inverse`` is the correctly rounded ``1 / gamma``.

    One product and two fused steps give this result exactly, without a branch, as long as nothing
    overflows (see Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point
    division when the divisor is known in advance", IEEE Transactions on Computers 53, 2004).
    """
    ratio = u * inverse
    return tl.fma(tl.fma(ratio, -gamma, u), inverse, ratio)


if INTERPRETED:  # the interpreter's fma rounds twice

    @jit
    def divide(u, gamma, inverse):  # noqa: ARG001
        return tl.div_rn(u, gamma)


@jit
def level_of(ratio, capacity, SIGNED: constexpr):
    """``clip(trunc(ratio), -N or 0, N)``; NaN stays NaN, so that a broken run is noticed."""
    if SIGNED:
        size = tl.clamp(tl.floor(tl.abs(ratio)), 0.0, capacity, tl.PropagateNan.ALL)
        return tl.where(ratio < 0, -size, size)
    return tl.clamp(tl.floor(ratio), 0.0, capacity, tl.PropagateNan.ALL)


@jit
def add_if_fired(x, change, ratio, SIGNED: constexpr):
    """``x + change * sign(S)``; the level S is not 0 if the ratio reaches one step."""
    added = tl.where(ratio >= 1, x + change, x)
    if SIGNED:
        added = tl.where(ratio <= -1, x - change, added)
    return added


@jit
def _with_sign(size, x):
    """A number that is not negative, with the sign of ``x``."""
    sign = x.to(tl.uint32, bitcast=True) & 0x80000000
    return (size.to(tl.uint32, bitcast=True) | sign).to(tl.float32, bitcast=True)


@jit
def load_steps(pointer, at, size, TIMESTEPS: constexpr):
    """The elements ``at`` of every timestep; all loads are issued before the first is used."""
    steps = ()
    for t in tl.static_range(TIMESTEPS):
        steps = steps + (tl.load(pointer + t * size + at, mask=at < size, other=0.0),)  # noqa: RUF005
    return steps


@jit
def forward_kernel(
    current_ptr,
    gamma_ptr,
    out_ptr,
    size,
    beta,
    alpha,
    capacity,
    TIMESTEPS: constexpr,
    SIGNED: constexpr,
    EMIT_LEVELS: constexpr,
    BLOCK: constexpr,
):
    size = tl.cast(size, tl.int64)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    currents = load_steps(current_ptr, at, size, TIMESTEPS)
    gamma = tl.load(gamma_ptr)
    inverse = tl.div_rn(1.0, gamma)

    v = 0.0
    for t in tl.static_range(TIMESTEPS):
        u = currents[t].to(tl.float32)
        if t > 0:
            u = beta * v + u
        ratio = divide(u, gamma, inverse)
        level = level_of(ratio, capacity, SIGNED)
        out = level if EMIT_LEVELS else gamma * level
        tl.store(out_ptr + t * size + at, out, mask=at < size)
        v = add_if_fired(u, -alpha * gamma, ratio, SIGNED)


@jit
def ratios_of(currents, gamma, inverse, beta, alpha, TIMESTEPS: constexpr, SIGNED: constexpr):
    """U / gamma of every timestep."""
    ratios = ()
    v = 0.0
    for t in tl.static_range(TIMESTEPS):
        u = currents[t].to(tl.float32)
        if t > 0:
            u = beta * v + u
        ratio = divide(u, gamma, inverse)
        ratios = ratios + (ratio,)  # noqa: RUF005
        v = add_if_fired(u, -alpha * gamma, ratio, SIGNED)
    return ratios


@jit
def slopes_of(r, unit, tail, low, high, sharpness, SIGNED: constexpr, SURROGATE: constexpr):
    """``unit * B'(r)`` and dB/dlam; ``tail = unit * lam``."""
    by_lam = 0.0
    if SURROGATE == "relsg":
        beyond = r - tl.clamp(r, low, high)
        fall = tl.exp2(tl.abs(beyond) * -1.4426950408889634)
        slope = tl.where(beyond == 0, unit, tail * fall)
        by_lam = _with_sign(1.0 - fall, beyond)
    elif SURROGATE == "box":
        within = tl.abs(r) if SIGNED else r
        slope = tl.where((within >= low) & (within <= high), unit, 0.0)
    else:
        x = 1.5707963267948966 * sharpness * (r - 1.0)
        slope = 0.5 * sharpness * unit / tl.fma(x, x, 1.0)
    return slope, by_lam


@jit
def backward_kernel(
    current_ptr,
    grad_ptr,
    gamma_ptr,
    lam_ptr,
    grad_current_ptr,
    sums_ptr,
    size,
    beta,
    alpha,
    capacity,
    low,
    high,
    sharpness,
    TIMESTEPS: constexpr,
    SIGNED: constexpr,
    EMIT_LEVELS: constexpr,
    SURROGATE: constexpr,
    BLOCK: constexpr,
    BLOCKS: constexpr,
):
    """With g = dL/dout[t], divided by gamma if S was sent, and h = dL/dV[t] = beta * dL/dI[t+1]:

    dL/dI[t]  = g * B' + h
    dL/dgamma = sum of g * (S - B' * r) - alpha * h * sign(S)
    dL/dlam   = sum of gamma * g * dB/dlam
    """
    size = tl.cast(size, tl.int64)
    program = tl.program_id(0)
    first = program.to(tl.int64) * (BLOCK * BLOCKS) + tl.arange(0, BLOCK)
    gamma = tl.load(gamma_ptr)
    inverse = tl.div_rn(1.0, gamma)
    unit = inverse if EMIT_LEVELS else 1.0  # scales the slopes, so that gradients need no scaling
    tail = tl.load(lam_ptr) * unit
    level_sum = tl.zeros((BLOCK,), tl.float32)
    taken_sum = tl.zeros((BLOCK,), tl.float32)
    lam_sum = tl.zeros((BLOCK,), tl.float32)

    for block in tl.range(0, BLOCKS, num_stages=3 if BLOCKS > 1 else 1):
        at = first + block * BLOCK
        currents = load_steps(current_ptr, at, size, TIMESTEPS)
        grads = load_steps(grad_ptr, at, size, TIMESTEPS)
        ratios = ratios_of(currents, gamma, inverse, beta, alpha, TIMESTEPS, SIGNED)

        h = 0.0
        for t in tl.static_range(TIMESTEPS - 1, -1, -1):
            r = ratios[t]
            g = grads[t].to(tl.float32)
            slope, by_lam = slopes_of(r, unit, tail, low, high, sharpness, SIGNED, SURROGATE)
            if SURROGATE == "relsg":
                lam_sum = tl.fma(g, by_lam, lam_sum)
            level_sum = tl.fma(g, level_of(r, capacity, SIGNED), level_sum)
            grad_u = g * slope
            taken_sum = tl.fma(grad_u, r, taken_sum)
            if t < TIMESTEPS - 1:
                taken_sum = add_if_fired(taken_sum, alpha * h, r, SIGNED)
                grad_u += h
            tl.store(grad_current_ptr + t * size + at, grad_u, mask=at < size)
            h = beta * grad_u

    if not EMIT_LEVELS:
        lam_sum *= gamma
    tl.store(sums_ptr + program, tl.sum(unit * level_sum - taken_sum))
    tl.store(sums_ptr + tl.num_programs(0) + program, tl.sum(lam_sum))


@jit
def long_forward_kernel(
    current_ptr,
    v_ptr,
    gamma_ptr,
    out_ptr,
    v_out_ptr,
    size,
    beta,
    alpha,
    capacity,
    TIMESTEPS: constexpr,
    GIVEN: constexpr,
    SIGNED: constexpr,
    EMIT_LEVELS: constexpr,
    BLOCK: constexpr,
):
    """Any number of timesteps, one after the other, from the membranes ``v`` if GIVEN; writes the
    final membranes too.
    """
    size = tl.cast(size, tl.int64)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gamma = tl.load(gamma_ptr)
    inverse = tl.div_rn(1.0, gamma)
    v = tl.zeros((BLOCK,), tl.float32)
    if GIVEN:
        v = tl.load(v_ptr + at, mask=at < size, other=0.0)
    for t in range(TIMESTEPS):
        here = t * size + at
        current = tl.load(current_ptr + here, mask=at < size, other=0.0)
        u = beta * v + current.to(tl.float32)
        ratio = divide(u, gamma, inverse)
        level = level_of(ratio, capacity, SIGNED)
        out = level if EMIT_LEVELS else gamma * level
        tl.store(out_ptr + here, out, mask=at < size)
        v = add_if_fired(u, -alpha * gamma, ratio, SIGNED)
    tl.store(v_out_ptr + at, v, mask=at < size)


@jit
def long_backward_kernel(
    current_ptr,
    v_ptr,
    grad_ptr,
    grad_v_out_ptr,
    gamma_ptr,
    lam_ptr,
    ratio_ptr,
    grad_current_ptr,
    grad_v_ptr,
    sums_ptr,
    size,
    beta,
    alpha,
    capacity,
    low,
    high,
    sharpness,
    TIMESTEPS: constexpr,
    GIVEN: constexpr,
    SIGNED: constexpr,
    EMIT_LEVELS: constexpr,
    SURROGATE: constexpr,
    BLOCK: constexpr,
):
    """As :func:`backward_kernel`, but h begins with the gradient of the final membranes.

    There are more timesteps than registers hold, so U / gamma of each timestep is stored in
    ``ratio`` on the way forward, and read on the way back.
    """
    size = tl.cast(size, tl.int64)
    program = tl.program_id(0)
    at = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gamma = tl.load(gamma_ptr)
    inverse = tl.div_rn(1.0, gamma)
    unit = inverse if EMIT_LEVELS else 1.0
    tail = tl.load(lam_ptr) * unit
    v = tl.zeros((BLOCK,), tl.float32)
    if GIVEN:
        v = tl.load(v_ptr + at, mask=at < size, other=0.0)
    for t in range(TIMESTEPS):
        here = t * size + at
        current = tl.load(current_ptr + here, mask=at < size, other=0.0)
        u = beta * v + current.to(tl.float32)
        ratio = divide(u, gamma, inverse)
        tl.store(ratio_ptr + here, ratio, mask=at < size)
        v = add_if_fired(u, -alpha * gamma, ratio, SIGNED)
    tl.debug_barrier()  # another thread of the block may read what this one has stored

    h = tl.load(grad_v_out_ptr + at, mask=at < size, other=0.0)
    level_sum = tl.zeros((BLOCK,), tl.float32)
    taken_sum = tl.zeros((BLOCK,), tl.float32)
    lam_sum = tl.zeros((BLOCK,), tl.float32)
    for back in range(TIMESTEPS):
        here = (TIMESTEPS - 1 - back) * size + at
        r = tl.load(ratio_ptr + here, mask=at < size, other=0.0)
        g = tl.load(grad_ptr + here, mask=at < size, other=0.0).to(tl.float32)
        slope, by_lam = slopes_of(r, unit, tail, low, high, sharpness, SIGNED, SURROGATE)
        if SURROGATE == "relsg":
            lam_sum = tl.fma(g, by_lam, lam_sum)
        level_sum = tl.fma(g, level_of(r, capacity, SIGNED), level_sum)
        grad_u = g * slope
        taken_sum = tl.fma(grad_u, r, taken_sum)
        taken_sum = add_if_fired(taken_sum, alpha * h, r, SIGNED)
        grad_u += h
        tl.store(grad_current_ptr + here, grad_u, mask=at < size)
        h = beta * grad_u
    tl.store(grad_v_ptr + at, h, mask=at < size)

    if not EMIT_LEVELS:
        lam_sum *= gamma
    tl.store(sums_ptr + program, tl.sum(unit * level_sum - taken_sum))
    tl.store(sums_ptr + tl.num_programs(0) + program, tl.sum(lam_sum))
