"""The bit-exact reference: what every other execution of an integer network must equal.

For each layer and timestep, all values integers::

    acc = sum over paths of 2**exponent * sum(weight * levels)
    U   = floor(m * V / 2**B) + bias + acc * 2**F           V = 0 before the first timestep
    S   = number of k in 1..N with U >= k * theta
    V   = U - reset * [S > 0]

The readout has no neuron: its logits are ``sum over T of (acc * 2**F + bias)``. How the sums stay
exact at the speed of BLAS: `lbq_hw.exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lbq_hw import exact
from lbq_hw.exact import Array, LayerPlan, Levels
from lbq_hw.network import INPUT, Network
from lbq_hw.numeric import Integers

Keep = Literal["logits", "levels", "all"]

BATCH_LEVELS = 1 << 25  # levels of the largest tensor that one batch may hold


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """The integers of one layer for one batch, each ``(T', n, C, H, W)``; T' is 1 or T.

    Members: `acc`, with T' = 1 for a layer whose current does not change over time; `u` and `v`;
    `levels` of the neurons; `output`, the levels after max-pooling, which is what consumers read.
    The input has `levels` and `output` alone, the readout `acc` and `u`, its logits so far. `acc`,
    `u` (but the readout's) and `v` are None unless everything was asked for.
    """

    name: str
    acc: Array | None = None
    u: Array | None = None
    v: Array | None = None
    levels: Levels | None = None
    output: Levels | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Logits ``(n, classes)`` and, where they were asked for, traces by layer name."""

    logits: Integers
    traces: Mapping[str, Trace] = field(default_factory=dict)

    @property
    def classes(self) -> NDArray[np.int64]:
        """Predicted class of each image: the largest logit, the first one on a tie."""
        return self.logits.argmax(axis=1)


def run(
    network: Network,
    raw: NDArray[np.uint8],
    *,
    keep: Keep = "logits",
    batch: int | None = None,
    observe: Callable[[Trace], None] | None = None,
) -> Result:
    """Execute the network on raw uint8 images, as `Input.quantize` takes them.

    `keep` says what traces the result holds: none, those with ``levels`` and ``output``, or
    ``all`` with every intermediate. `observe` is called with each trace of each batch in execution
    order, the input's first and the readout's last, so that statistics over a dataset need not
    hold it; tensors that nobody needs any more are dropped. OverflowError where a network's sums
    cannot be proven exact.
    """
    if keep not in ("logits", "levels", "all"):
        raise ValueError(f"keep must be 'logits', 'levels' or 'all', not {keep!r}")
    if batch is None:
        largest = max(int(np.prod(layer.shape)) for layer in network.layers)
        batch = max(1, BATCH_LEVELS // (network.timesteps * largest))
    elif batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch!r}")
    plans = exact.plan(network)
    logits: list[Integers] = []
    kept: dict[str, list[Trace]] = {}
    for start in range(0, max(len(raw), 1), batch):
        levels = _input_levels(network, raw[start : start + batch])
        for trace in _traces(plans, levels, network.timesteps, full=keep == "all"):
            if observe is not None:
                observe(trace)
            if trace.levels is None and trace.u is not None:
                logits.append(trace.u[-1].reshape(levels.shape[1], network.classes))
            if keep != "logits":
                kept.setdefault(trace.name, []).append(trace)
    return Result(
        logits=np.concatenate(logits),
        traces={name: _join(parts) for name, parts in kept.items()},
    )


def predict(
    network: Network, raw: NDArray[np.uint8], *, batch: int | None = None
) -> NDArray[np.int64]:
    """Class index of each raw image."""
    return run(network, raw, batch=batch).classes


def _input_levels(network: Network, raw: NDArray[np.uint8]) -> Levels:
    levels = network.input.quantize(raw)
    if not network.input.static and len(levels) != network.timesteps:
        raise ValueError(
            f"raw input must have {network.timesteps} frames an image, as many as the network has "
            f"timesteps, not {len(levels)}"
        )
    return np.ascontiguousarray(np.moveaxis(levels, 2, -1))


def _traces(
    plans: tuple[LayerPlan, ...], levels: Levels, timesteps: int, *, full: bool
) -> Iterator[Trace]:
    tensors = {INPUT: levels}
    yield Trace(name=INPUT, levels=_channels_first(levels), output=_channels_first(levels))
    for plan in plans:
        if plan.layer.neuron is None:
            yield _read_out(plan, tensors, timesteps, full)
        else:
            trace, tensors[plan.layer.name] = _spike(plan, tensors, timesteps, full)
            yield trace
        for name in plan.last_reads:
            del tensors[name]


def _spike(
    plan: LayerPlan, tensors: Mapping[str, Levels], timesteps: int, full: bool
) -> tuple[Trace, Levels]:
    layer = plan.layer
    images = _images(plan, tensors)
    channels, height, width = layer.shape
    shape = (timesteps, images, height, width, channels)
    levels = np.empty(shape, np.uint8)
    u_all, v_all = (np.empty(shape if full else 0, plan.dtype) for _ in range(2))
    accs: list[Array] = []
    for block in plan.blocks(images):
        acc = plan.accumulate(tensors, block)
        for t, (u, s, v) in enumerate(plan.fire(acc, timesteps)):
            levels[t, block] = s
            if full:
                u_all[t, block], v_all[t, block] = u, v
        if full:
            accs.append(acc)
    output = levels if layer.pool is None else exact.max_pool(levels, layer.pool)
    trace = Trace(
        name=layer.name,
        acc=_channels_first(np.concatenate(accs, axis=1)) if full else None,
        u=_channels_first(u_all) if full else None,
        v=_channels_first(v_all) if full else None,
        levels=_channels_first(levels),
        output=_channels_first(output),
    )
    return trace, output


def _read_out(plan: LayerPlan, tensors: Mapping[str, Levels], timesteps: int, full: bool) -> Trace:
    blocks = plan.blocks(_images(plan, tensors))
    acc = np.concatenate([plan.accumulate(tensors, block) for block in blocks], axis=1)
    current = plan.currents(acc).reshape(acc.shape)
    currents = np.broadcast_to(current, (timesteps, *acc.shape[1:]))
    return Trace(
        name=plan.layer.name,
        acc=_channels_first(acc) if full else None,
        u=_channels_first(np.cumsum(currents, axis=0)),
    )


def _images(plan: LayerPlan, tensors: Mapping[str, Levels]) -> int:
    return tensors[plan.paths[0].path.source].shape[1]


def _channels_first(x: Array) -> Array:
    return np.moveaxis(x, -1, 2)


def _join(parts: list[Trace]) -> Trace:
    """One trace from those of consecutive batches."""

    def join(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays, axis=1)

    fields = ("acc", "u", "v", "levels", "output")
    return Trace(name=parts[0].name, **{name: join(name) for name in fields})
