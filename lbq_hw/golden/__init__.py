"""The bit-exact reference: what every other execution of an integer network must equal.

For each layer and timestep, all values integers::

    acc = sum over paths of 2**exponent * sum(weight * levels)
    U   = floor(m * V / 2**B) + bias + acc * 2**F           V = 0 before the first timestep
    S   = number of k in 1..N with U >= k * theta
    V   = U - reset * [S > 0], or U * [S = 0] in a layer that resets to zero
    V   = max(V, floor) in a layer whose membranes have a floor

The readout has no neuron: its logits are ``sum over T of (acc * 2**F + bias)``. How the sums stay
exact at the speed of BLAS: `lbq_hw.golden.exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lbq_hw.golden import exact
from lbq_hw.golden.exact import Array, LayerPlan, Levels
from lbq_hw.golden.parallel import Workers, workers
from lbq_hw.network import INPUT, Layer, Network
from lbq_hw.numeric import Integers

Keep = Literal["logits", "levels", "all"]

BATCH_LEVELS = 1 << 23  # levels of the largest tensor that one batch holds


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

    def emitted(self, image: int) -> dict[str, NDArray[np.uint8]]:
        """The levels ``(T, C, H, W)`` of every layer of neurons for one image, after its max-pool,
        by the layer's name. Traces must have been kept.
        """
        return {
            name: np.asarray(trace.output[:, image], np.uint8)
            for name, trace in self.traces.items()
            if name != INPUT and trace.output is not None
        }


def run(
    network: Network,
    raw: NDArray[np.uint8],
    *,
    keep: Keep = "logits",
    batch: int | None = None,
    observe: Callable[[Trace], None] | None = None,
) -> Result:
    """Execute the network on raw uint8 images, as `Input.quantize` takes them.

    `keep` selects the traces in the result: none, traces with ``levels`` and ``output``, or ``all``
    with every intermediate value. `observe` is called with each trace of each batch in execution
    order, from the input to the readout, so that statistics over a dataset need not keep all
    traces; tensors without further readers are dropped. OverflowError if a network's sums cannot be
    proven exact.
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
    with workers(min(batch, len(raw))) as team:
        for start in range(0, max(len(raw), 1), batch):
            levels = _input_levels(network, raw[start : start + batch])
            for trace in _traces(_Batch(network, {INPUT: levels}, team, keep == "all"), plans):
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


def run_layer(network: Network, layer: Layer, traces: Mapping[str, Trace]) -> Trace:
    """Execute one layer on the output of its sources, given by their `traces`.

    The layer replaces the network's layer of the same name, and its numbers may differ. Its trace
    is as with ``keep="levels"``.
    """
    tensors: dict[str, Levels] = {}
    for path in layer.paths:
        output = traces[path.source].output
        assert output is not None
        tensors[path.source] = np.ascontiguousarray(np.moveaxis(output, 2, -1))
    with workers(next(iter(tensors.values())).shape[1]) as team:
        batch = _Batch(network, tensors, team, full=False)
        return batch.execute(exact.plan_layer(network, layer))


def outputs(network: Network, logits: Integers) -> NDArray[np.float64]:
    """Logits ``(n, classes)`` of a network in the unit of the model that it was exported from, in
    the shape of its readout: ``(n, K, H, W)``. ValueError for a network that does not say its unit.
    """
    layer = network.layers[-1]
    if layer.scale is None:
        raise ValueError(f"network {network.name!r} does not say the scale of its readout")
    unit = layer.scale.reshape(-1, 1, 1) * 2.0**-layer.fraction_bits / network.timesteps
    return logits.reshape(-1, *layer.shape) * unit


def predict(
    network: Network, raw: NDArray[np.uint8], *, batch: int | None = None
) -> NDArray[np.int64]:
    """Class index of each raw image."""
    return run(network, raw, batch=batch).classes


def _input_levels(network: Network, raw: NDArray[np.uint8]) -> Levels:
    levels = network.input.quantize(raw)
    if not network.input.static and len(levels) != network.timesteps:
        raise ValueError(
            f"raw input must have {network.timesteps} frames per image, as many as the network has "
            f"timesteps, not {len(levels)}"
        )
    return np.ascontiguousarray(np.moveaxis(levels, 2, -1))


class _Batch:
    """The state of one batch: the tensors that later layers still read."""

    def __init__(
        self, network: Network, tensors: dict[str, Levels], team: Workers, full: bool
    ) -> None:
        self.timesteps, self.images = network.timesteps, next(iter(tensors.values())).shape[1]
        self.team, self.full = team, full
        self.tensors = tensors

    def accumulate(self, plan: LayerPlan, use: Callable[[slice, Array], None]) -> None:
        """Give acc of every block of images to `use`."""

        def work(block: slice) -> None:
            use(block, plan.accumulate(self.tensors, block))

        self.team.run(work, plan.blocks(self.images, self.team.count))

    def execute(self, plan: LayerPlan) -> Trace:
        """Execute a layer; the output of neurons joins the tensors."""
        return self._read_out(plan) if plan.layer.neuron is None else self._spike(plan)

    def _spike(self, plan: LayerPlan) -> Trace:
        layer = plan.layer
        shape = self._shape(plan, self.timesteps)
        levels = np.empty(shape, np.uint8)
        u_all, v_all = (np.empty(shape if self.full else 0, plan.dtype) for _ in range(2))
        acc_all = np.empty(self._shape(plan, plan.steps) if self.full else 0, plan.dtype)

        def fire(block: slice, acc: Array) -> None:
            for t, (u, s, v) in enumerate(plan.fire(acc, self.timesteps)):
                levels[t, block] = s
                if self.full:
                    u_all[t, block], v_all[t, block] = u, v
            if self.full:
                acc_all[:, block] = acc

        self.accumulate(plan, fire)
        output = levels if layer.pool is None else exact.max_pool(levels, layer.pool)
        self.tensors[layer.name] = output
        return Trace(
            name=layer.name,
            acc=_channels_first(acc_all) if self.full else None,
            u=_channels_first(u_all) if self.full else None,
            v=_channels_first(v_all) if self.full else None,
            levels=_channels_first(levels),
            output=_channels_first(output),
        )

    def _read_out(self, plan: LayerPlan) -> Trace:
        acc_all = np.empty(self._shape(plan, plan.steps), plan.dtype)

        def store(block: slice, acc: Array) -> None:
            acc_all[:, block] = acc

        self.accumulate(plan, store)
        currents = plan.currents(acc_all).reshape(acc_all.shape)
        repeated = np.broadcast_to(currents, self._shape(plan, self.timesteps))
        return Trace(
            name=plan.layer.name,
            acc=_channels_first(acc_all) if self.full else None,
            u=_channels_first(np.cumsum(repeated, axis=0)),
        )

    def _shape(self, plan: LayerPlan, steps: int) -> tuple[int, ...]:
        channels, height, width = plan.layer.shape
        return steps, self.images, height, width, channels


def _traces(batch: _Batch, plans: tuple[LayerPlan, ...]) -> Iterator[Trace]:
    levels = _channels_first(batch.tensors[INPUT])
    yield Trace(name=INPUT, levels=levels, output=levels)
    for plan in plans:
        yield batch.execute(plan)
        for name in plan.last_reads:
            del batch.tensors[name]


def _channels_first(x: Array) -> Array:
    return np.moveaxis(x, -1, 2)


def _join(parts: list[Trace]) -> Trace:
    """One trace, joined from the traces of consecutive batches."""

    def join(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays, axis=1)

    fields = ("acc", "u", "v", "levels", "output")
    return Trace(name=parts[0].name, **{name: join(name) for name in fields})
