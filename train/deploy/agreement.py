"""Compares an integer network with the module that it was exported from, layer by layer.

Each layer of the module gets the integer network's levels as its inputs. So a difference shows only
in the layer that causes it: rounding in earlier layers has no effect, and the difference does not
spread to later layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from lbq_hw import golden
from lbq_hw.network import Layer, Network
from lbq_hw.train.data import InputSpec
from lbq_hw.train.graph import Analysis, Population
from lbq_hw.train.graph.modes import evaluating
from lbq_hw.train.graph.trace import Given, Traced

MOST_DIFFERENT = 0.05  # share of a layer's levels, where the weights were trained quantized
MOST_ROUNDED = 0.25  # where float weights are rounded, which changes the layer itself
_SAME = 1e-3  # of the largest output: what the order of additions may change
_FAR = 0.05  # of the range of a value over the samples
_CONSTANT = 1e-6  # a value of a smaller range, as a part of itself, is one constant
VALUES = "values"  # the head of a network whose outputs are not classes
_WORK = 3e9  # multiplications that a check may take, so that it takes seconds at most
_SAMPLES = 4, 64  # the least and the most samples


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The result of a comparison on `samples` inputs.

    Members: `layers`, by name, the share of levels that differ for equal inputs of the layer (for
    the readout: of outputs, see `differing`); `classes`, the share of outputs that differ if both
    networks run from the pixels on; `logits`, the largest difference of logits, relative to the
    largest logit.
    """

    samples: int
    layers: Mapping[str, float]
    classes: float
    logits: float

    @property
    def worst(self) -> str:
        return max(self.layers, key=self.layers.__getitem__)

    @property
    def largest(self) -> float:
        """The share of the layer that differs most."""
        return self.layers[self.worst]

    def to_dict(self) -> dict[str, Any]:
        return {
            "samples": self.samples,
            "layers": dict(self.layers),
            "classes": self.classes,
            "logits": self.logits,
        }


def differing(
    mine: NDArray[Any], theirs: NDArray[Any], *, values: bool = False
) -> NDArray[np.bool_]:
    """Which outputs of a model and a network differ, both (n, K, ...), in the model's unit.

    Several logits are compared by class, one class per place of a dense map. `values`, or a single
    logit, are compared as numbers: a value differs if it is off by more than a twentieth of its own
    range over all samples and places, so that a large constant in it hides nothing.
    """
    if not values and mine.shape[1] > 1:
        return mine.argmax(axis=1) != theirs.argmax(axis=1)
    axes = (0, *range(2, mine.ndim))
    span = mine.max(axis=axes, keepdims=True) - mine.min(axis=axes, keepdims=True)
    size = np.abs(mine).max(axis=axes, keepdims=True)
    span = np.where(span > _CONSTANT * size, span, size)
    return np.abs(mine - theirs) > _FAR * span


def reads_values(network: Network) -> bool:
    """Whether the outputs of a network are values, and not logits of classes."""
    return network.meta.get("head") == VALUES


class DisagreementError(ValueError):
    """An integer network differs from its module; one sentence for the user."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Forced:
    """A layer of the module, run on the integer network's levels, beside the network's own layer.

    Members: `layer` of the network; `current` (T*n, ...) from the module's synapses, or (n, ...)
    logits; `output` of the module's neuron, None for the readout; `values`, whether the readout has
    values instead of classes.
    """

    layer: Layer
    population: Population
    current: Tensor
    output: Tensor | None
    trace: golden.Trace
    values: bool = False

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Which levels (T*n, C, ...) differ, or for the readout, which outputs (`differing`)."""
        if self.output is None:
            assert self.trace.u is not None
            theirs = real_logits(self.layer, self.trace.u[-1], len(self.trace.u))
            mine = _array(self.current).reshape(theirs.shape)
            return differing(mine, theirs, values=self.values)
        neuron, levels = self.population.neuron, self.trace.levels
        assert neuron is not None
        assert levels is not None
        scale = 1.0 if neuron.emit_levels else neuron.gamma.detach()
        mine = _array(torch.round(self.output / scale))
        return mine != levels.reshape(mine.shape)


Answer = Callable[[Population, Tensor, Tensor | None], golden.Trace]
"""For a layer with `Forced.current` and `Forced.output`, returns the integer network's levels."""


def compare(
    found: Analysis, root: fx.GraphModule, spec: InputSpec, network: Network, raw: NDArray[np.uint8]
) -> Agreement:
    """Compare a module, as `train.graph.trace.analyze` found it, with its integer network.

    `raw` are inputs as datasets have them, (n, C, H, W), or (n, T, C, H, W) for recordings.
    """
    layer = network.layers[-1]
    theirs = real_logits(layer, golden.run(network, raw).logits, network.timesteps)
    with torch.no_grad(), evaluating(root):
        mine = _array(root(_input(root, spec, raw))).reshape(theirs.shape)
    return Agreement(
        samples=len(raw),
        layers={
            layer.population.name: float(np.mean(layer.differs))
            for layer in forced(found, root, spec, network, raw)
        },
        classes=float(np.mean(differing(mine, theirs, values=reads_values(network)))),
        logits=float(np.abs(mine - theirs).max() / max(np.abs(mine).max(), np.finfo(float).tiny)),
    )


def real_logits(layer: Layer, sums: NDArray[Any], timesteps: int) -> NDArray[np.float64]:
    """The logits of a readout, summed over timesteps, in the unit of the model: (n, K, H, W)."""
    assert layer.scale is not None
    unit = layer.scale.reshape(-1, 1, 1) * 2.0**-layer.fraction_bits / timesteps
    return sums.reshape(-1, *layer.shape) * unit


def check_given(root: Traced, spec: InputSpec, raw: NDArray[np.uint8]) -> None:
    """DisagreementError if the user's module, in evaluation mode, gives other outputs than the
    layers that were read from it.
    """
    if root.given is None:
        return
    try:
        with _in_double(root, root.given.module):
            ours, theirs = _both(root, root.given, spec, raw)
    except RuntimeError:  # the module takes only its own number type
        ours, theirs = _both(root, root.given, spec, raw)
    far = _SAME * theirs.abs().max().clamp_min(torch.finfo(theirs.dtype).tiny)
    differ = int(((ours - theirs).abs() > far).flatten(1).any(1).sum())
    if differ > MOST_DIFFERENT * len(raw):
        raise DisagreementError(
            f"the model gives other outputs than the layers that were read from it, on {differ} of "
            f"{len(raw)} inputs: it computes something outside of its layers; make that a layer"
        )


def _both(
    root: Traced, given: Given, spec: InputSpec, raw: NDArray[np.uint8]
) -> tuple[Tensor, Tensor]:
    """Outputs of the layers that were read, and of the module as the user gave it."""
    x = _input(root, spec, raw)
    with torch.no_grad(), evaluating(root):
        return root(x), given.run(x)


@contextmanager
def _in_double(*modules: nn.Module) -> Iterator[None]:
    """Context in which float32 modules are in double precision, so that the order of additions
    hardly ever changes a level. The conversion and its inverse are exact.
    """
    tensors = [one for module in modules for one in (*module.parameters(), *module.buffers())]
    if any(tensor.dtype != torch.float32 for tensor in tensors if tensor.is_floating_point()):
        yield
        return
    try:
        for module in modules:
            module.double()
        yield
    finally:
        for module in modules:
            module.float()


def noise(spec: InputSpec, timesteps: int, count: int = 4) -> NDArray[np.uint8]:
    """Raw inputs of random pixels, the same in every call."""
    frames = () if spec.static else (timesteps,)
    generator = np.random.default_rng(0)
    return generator.integers(0, 256, (count, *frames, *spec.shape), dtype=np.uint8)


def classes(model: nn.Module, spec: InputSpec, raw: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The classes that a module gives raw inputs."""
    with torch.no_grad(), evaluating(model):
        return _array(model(_input(model, spec, raw))).argmax(axis=1).reshape(-1)


def forced(
    found: Analysis,
    root: fx.GraphModule,
    spec: InputSpec,
    network: Network,
    raw: NDArray[np.uint8],
    *,
    keep: Literal["levels", "all"] = "levels",
) -> Iterator[Forced]:
    """Run every layer of the module, in order, on the levels of the integer network.

    `keep` says what the traces hold, as in `golden.run`.
    """
    traces = golden.run(network, raw, keep=keep).traces
    layers: list[Forced] = []

    def answer(population: Population, current: Tensor, output: Tensor | None) -> golden.Trace:
        trace = traces[population.name]
        layers.append(
            Forced(
                layer=network.by_name[population.name],
                population=population,
                current=current,
                output=output,
                trace=trace,
                values=reads_values(network),
            )
        )
        return trace

    walk(found, root, spec, raw, answer)
    yield from layers


def walk(
    found: Analysis,
    root: fx.GraphModule,
    spec: InputSpec,
    raw: NDArray[np.uint8],
    answer: Answer,
) -> None:
    """Run the module: each layer, in order, reads the levels that `answer` gave for its sources."""
    with torch.no_grad(), evaluating(root):
        _ForcedRun(root, found, answer).run(_input(root, spec, raw))


class _ForcedRun(fx.Interpreter):
    """Runs a module with the output of every neuron replaced."""

    def __init__(self, root: fx.GraphModule, found: Analysis, answer: Answer) -> None:
        super().__init__(root)
        self._populations = {population.name: population for population in found.populations}
        self._answer = answer
        self._readout = next(p for p in found.populations if p.neuron is None)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        result = super().call_module(target, args, kwargs)
        population = self._populations.get(str(target))
        if population is None or population.neuron is None:
            return result
        trace = self._answer(population, args[0], result)
        assert trace.levels is not None
        levels = torch.as_tensor(trace.levels, device=result.device).to(result.dtype)
        scale = 1.0 if population.neuron.emit_levels else population.neuron.gamma.detach()
        return levels.reshape(result.shape) * scale

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        self._answer(self._readout, args[0], None)
        return super().output(target, args, kwargs)


def _input(root: nn.Module, spec: InputSpec, raw: NDArray[np.uint8]) -> Tensor:
    like = next(root.parameters(), torch.zeros(()))
    x = spec.normalize(torch.from_numpy(raw).to(like.device), like.dtype)
    return x if spec.static else x.transpose(0, 1)


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().numpy()


def samples(network: Network, seed: int = 0) -> NDArray[np.uint8]:
    """Default inputs for a comparison: smooth shapes, each darker than the previous one.

    As many as a few seconds allow, and the same in every call.
    """
    count = int(np.clip(_WORK / multiplications(network), *_SAMPLES))
    generator = np.random.default_rng(seed)
    channels, height, width = network.input.shape
    frames = 1 if network.input.static else network.timesteps
    coarse = generator.random((count, frames, channels, -(-height // 4) + 1, -(-width // 4) + 1))
    rows, columns = np.arange(height) / 4, np.arange(width) / 4
    smooth = _between(_between(coarse, rows, 3), columns, 4)
    noisy = smooth + 0.2 * generator.standard_normal(smooth.shape)
    white = min(network.input.capacity << network.input.shift, 255)
    brightness = white * np.linspace(1.0, 0.2, count).reshape(-1, 1, 1, 1, 1)
    raw = np.clip(brightness * noisy, 0, 255).astype(np.uint8)
    return raw[:, 0] if network.input.static else raw


def _between(values: NDArray[Any], places: NDArray[Any], axis: int) -> NDArray[Any]:
    """Linear interpolation along an axis."""
    low = places.astype(int)
    shape = [1] * values.ndim
    shape[axis] = -1
    part = (places - low).reshape(shape)
    return values.take(low, axis) * (1 - part) + values.take(low + 1, axis) * part


def multiplications(network: Network) -> float:
    """Multiplications of one image over all timesteps, if levels were dense."""
    total = 1.0
    for layer in network.layers:
        pixels = layer.shape[1] * layer.shape[2] * network.timesteps
        total += sum(pixels * path.weight.size for path in layer.paths)
    return total
