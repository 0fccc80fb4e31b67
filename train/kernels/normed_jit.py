"""The Triton kernels behind :mod:`train.kernels.normed`, which describes what they compute.

A block is a number of neurons that are adjacent in memory, with all their timesteps. It holds a
whole number of pixels, so a lane has the same channel in every block: the numbers of a channel are
loaded once per program, and sums per channel need no other lane until the end.
"""

from __future__ import annotations

from lbq_hw.train.kernels.recurrence_jit import (
    add_if_fired,
    constexpr,
    divide,
    jit,
    level_of,
    load_steps,
    ratios_of,
    slopes_of,
    tl,
)


@jit
def _affine(stats_ptr, weight_ptr, bias_ptr, channel, CHANNELS: constexpr):
    """Mean, scale and bias of each lane's channel."""
    scale = tl.load(weight_ptr + channel) * tl.load(stats_ptr + CHANNELS + channel)
    return tl.load(stats_ptr + channel), scale, tl.load(bias_ptr + channel)


@jit
def _second_affine(
    stats_ptr, weight_ptr, bias_ptr, channel, CHANNELS: constexpr, SECOND: constexpr
):
    mean = 0.0
    scale = 0.0
    bias = 0.0
    if SECOND == "norm":
        mean, scale, bias = _affine(stats_ptr, weight_ptr, bias_ptr, channel, CHANNELS)
    elif SECOND == "levels":
        scale = tl.load(weight_ptr)
    return mean, scale, bias


@jit
def _current(x, y, x_mean, x_scale, x_bias, y_mean, y_scale, y_bias, SECOND: constexpr):
    current = (x.to(tl.float32) - x_mean) * x_scale + x_bias
    if SECOND == "norm":
        current += (y.to(tl.float32) - y_mean) * y_scale + y_bias
    elif SECOND == "levels":
        current += y.to(tl.float32) * y_scale
    return current


@jit
def _by_channel(lanes, CHANNELS: constexpr, BLOCK: constexpr):
    return tl.sum(tl.reshape(lanes, (BLOCK // CHANNELS, CHANNELS)), 0)


@jit
def moments_kernel(
    x_ptr,
    sums_ptr,
    size,
    CHANNELS: constexpr,
    UNROLL: constexpr,
    BLOCK: constexpr,
    BLOCKS: constexpr,
    STAGES: constexpr,
):
    size = tl.cast(size, tl.int64)
    program = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    shift = tl.load(x_ptr + lane % CHANNELS).to(tl.float32)
    first = tl.zeros((BLOCK,), tl.float32)
    second = tl.zeros((BLOCK,), tl.float32)
    for block in tl.range(0, BLOCKS, num_stages=STAGES):
        start = (program + block * tl.num_programs(0)) * (BLOCK * UNROLL) + lane
        for part in tl.static_range(UNROLL):
            at = start + part * BLOCK
            x = tl.load(x_ptr + at, mask=at < size, other=0.0).to(tl.float32)
            distance = tl.where(at < size, x - shift, 0.0)
            first += distance
            second = tl.fma(distance, distance, second)
    out = sums_ptr + program * (2 * CHANNELS) + tl.arange(0, CHANNELS)
    tl.store(out, _by_channel(first, CHANNELS, BLOCK))
    tl.store(out + CHANNELS, _by_channel(second, CHANNELS, BLOCK))


@jit
def forward_kernel(
    x_ptr,
    x_stats_ptr,
    x_weight_ptr,
    x_bias_ptr,
    y_ptr,
    y_stats_ptr,
    y_weight_ptr,
    y_bias_ptr,
    gamma_ptr,
    out_ptr,
    size,
    beta,
    alpha,
    capacity,
    CHANNELS: constexpr,
    TIMESTEPS: constexpr,
    STATIC: constexpr,
    SECOND: constexpr,
    SIGNED: constexpr,
    EMIT_LEVELS: constexpr,
    BLOCK: constexpr,
    BLOCKS: constexpr,
    STAGES: constexpr,
):
    size = tl.cast(size, tl.int64)
    lane = tl.arange(0, BLOCK)
    start = tl.program_id(0).to(tl.int64) * (BLOCK * BLOCKS) + lane
    channel = lane % CHANNELS
    x_mean, x_scale, x_bias = _affine(x_stats_ptr, x_weight_ptr, x_bias_ptr, channel, CHANNELS)
    y_mean, y_scale, y_bias = _second_affine(
        y_stats_ptr, y_weight_ptr, y_bias_ptr, channel, CHANNELS, SECOND
    )
    gamma = tl.load(gamma_ptr)
    inverse = tl.div_rn(1.0, gamma)

    for block in tl.range(0, BLOCKS, num_stages=STAGES):
        at = start + block * BLOCK
        xs = load_steps(x_ptr, at, size, 1 if STATIC else TIMESTEPS)
        ys = load_steps(y_ptr, at, size, 0 if SECOND == "none" else TIMESTEPS)
        v = 0.0
        for t in tl.static_range(TIMESTEPS):
            u = _current(
                xs[0 if STATIC else t],
                0.0 if SECOND == "none" else ys[t],
                x_mean,
                x_scale,
                x_bias,
                y_mean,
                y_scale,
                y_bias,
                SECOND,
            )
            if t > 0:
                u = beta * v + u
            ratio = divide(u, gamma, inverse)
            level = level_of(ratio, capacity, SIGNED)
            out = level if EMIT_LEVELS else gamma * level
            tl.store(out_ptr + t * size + at, out, mask=at < size)
            v = add_if_fired(u, -alpha * gamma, ratio, SIGNED)


@jit
def backward_kernel(
    grad_ptr,
    x_ptr,
    x_stats_ptr,
    x_weight_ptr,
    x_bias_ptr,
    y_ptr,
    y_stats_ptr,
    y_weight_ptr,
    y_bias_ptr,
    gamma_ptr,
    lam_ptr,
    grad_current_ptr,
    channel_sums_ptr,
    sums_ptr,
    size,
    beta,
    alpha,
    capacity,
    low,
    high,
    sharpness,
    CHANNELS: constexpr,
    TIMESTEPS: constexpr,
    STATIC: constexpr,
    SECOND: constexpr,
    SIGNED: constexpr,
    SURROGATE: constexpr,
    BLOCK: constexpr,
    BLOCKS: constexpr,
    STAGES: constexpr,
):
    """As in ``train.kernels.recurrence_jit``, and per channel the sums of dL/dI, of
    dL/dI * (x - mean) and, for a second norm, of dL/dI * (y - mean'). All gradients are computed as
    if ``gamma * S`` was sent; the gradient of lam is divided by gamma.
    """
    size = tl.cast(size, tl.int64)
    program = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    channel = lane % CHANNELS
    x_mean, x_scale, x_bias = _affine(x_stats_ptr, x_weight_ptr, x_bias_ptr, channel, CHANNELS)
    y_mean, y_scale, y_bias = _second_affine(
        y_stats_ptr, y_weight_ptr, y_bias_ptr, channel, CHANNELS, SECOND
    )
    gamma = tl.load(gamma_ptr)
    inverse = tl.div_rn(1.0, gamma)
    lam = tl.load(lam_ptr)
    gamma_sum = tl.zeros((BLOCK,), tl.float32)
    lam_sum = tl.zeros((BLOCK,), tl.float32)
    current_sum = tl.zeros((BLOCK,), tl.float32)
    x_sum = tl.zeros((BLOCK,), tl.float32)
    y_sum = tl.zeros((BLOCK,), tl.float32)

    for block in tl.range(0, BLOCKS, num_stages=STAGES):
        at = (program + block * tl.num_programs(0)) * BLOCK + lane
        xs = load_steps(x_ptr, at, size, 1 if STATIC else TIMESTEPS)
        ys = load_steps(y_ptr, at, size, 0 if SECOND == "none" else TIMESTEPS)
        grads = load_steps(grad_ptr, at, size, TIMESTEPS)
        currents = ()
        for t in tl.static_range(TIMESTEPS):
            current = _current(
                xs[0 if STATIC else t],
                0.0 if SECOND == "none" else ys[t],
                x_mean,
                x_scale,
                x_bias,
                y_mean,
                y_scale,
                y_bias,
                SECOND,
            )
            currents = currents + (current,)  # noqa: RUF005
        ratios = ratios_of(currents, gamma, inverse, beta, alpha, TIMESTEPS, SIGNED)

        h = 0.0
        total = 0.0
        for t in tl.static_range(TIMESTEPS - 1, -1, -1):
            r = ratios[t]
            g = grads[t].to(tl.float32)
            slope, by_lam = slopes_of(r, 1.0, lam, low, high, sharpness, SIGNED, SURROGATE)
            by_gamma = tl.fma(slope, -r, level_of(r, capacity, SIGNED))
            gamma_sum = tl.fma(g, by_gamma, gamma_sum)
            if SURROGATE == "relsg":
                lam_sum = tl.fma(g, by_lam, lam_sum)
            grad_u = g * slope
            if t < TIMESTEPS - 1:
                gamma_sum = add_if_fired(gamma_sum, -alpha * h, r, SIGNED)
                grad_u += h
            h = beta * grad_u
            if STATIC:
                total += grad_u
            else:
                current_sum += grad_u
                x_sum = tl.fma(grad_u, xs[t].to(tl.float32) - x_mean, x_sum)
                if SECOND == "norm":
                    y_sum = tl.fma(grad_u, ys[t].to(tl.float32) - y_mean, y_sum)
                tl.store(grad_current_ptr + t * size + at, grad_u, mask=at < size)
        if STATIC:
            current_sum += total
            x_sum = tl.fma(total, xs[0].to(tl.float32) - x_mean, x_sum)
            tl.store(grad_current_ptr + at, total, mask=at < size)

    tl.store(sums_ptr + program, tl.sum(gamma_sum))
    tl.store(sums_ptr + tl.num_programs(0) + program, tl.sum(lam_sum))
    COUNT: constexpr = 3 if SECOND == "norm" else 2
    out = channel_sums_ptr + program * (COUNT * CHANNELS) + tl.arange(0, CHANNELS)
    tl.store(out, _by_channel(current_sum, CHANNELS, BLOCK))
    tl.store(out + CHANNELS, _by_channel(x_sum, CHANNELS, BLOCK))
    if SECOND == "norm":
        tl.store(out + 2 * CHANNELS, _by_channel(y_sum, CHANNELS, BLOCK))
