"""The smallest network that still shows a difference.

All candidates run on the core that showed the difference, so nothing is built again. A candidate is
kept if it is smaller and the core still differs from golden; then the search starts again from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from lbq_hw import golden
from lbq_hw.golden.streaming import Stream
from lbq_hw.network import INPUT, Input, Layer, Network
from lbq_hw.network import Path as NetworkPath
from lbq_hw.numeric import Integers, plane_count
from lbq_hw.sim.sweep.cases import Case
from lbq_hw.sim.sweep.stands import Trial

MOST_TRIES = 400
"""The largest number of candidates to run."""


def smallest(case: Case, program: Path) -> Case:
    """The smallest case that was found, with only one network if this network alone differs.

    A core may differ only because of the state that earlier networks left. Then the last of these
    networks is kept, or all of them.
    """
    for first in (len(case.trials) - 1, len(case.trials) - 2, 0):
        shown = replace(case, trials=case.trials[max(first, 0) :])
        if shown.difference(program) is not None:
            break
    else:
        return case
    tries = 0
    candidates = _smaller(shown.trials[-1])
    while tries < MOST_TRIES and (trial := next(candidates, None)) is not None:
        tries += 1
        if size(trial) >= size(shown.trials[-1]):
            continue
        candidate = replace(shown, trials=(*shown.trials[:-1], trial))
        if _differs(candidate, program):
            shown, candidates = candidate, _smaller(trial)
    return shown


def _differs(case: Case, program: Path) -> bool:
    try:
        return case.difference(program) is not None
    except (ValueError, OverflowError):  # the core cannot run it, or widths are not proven
        return False


def size(trial: Trial) -> tuple[int, ...]:
    """The sizes to reduce, the most important first."""
    network = trial.network
    paths = [path for layer in network.layers for path in layer.paths]
    return (
        len(network.layers),
        len(paths),
        len(trial.inputs),
        network.timesteps,
        sum(layer.shape[0] for layer in network.layers),
        sum(path.pool is not None for path in paths),
        sum(layer.pool is not None for layer in network.layers),
        sum(int(np.count_nonzero(path.weight)) for path in paths),
        sum(int(np.count_nonzero(layer.bias)) for layer in network.layers),
        int(np.count_nonzero(trial.inputs)),
    )


def _smaller(trial: Trial) -> Iterator[Trial]:
    """Candidates, the smallest ones first; candidates that are not valid networks are left out."""
    for make in (_alone, _shortened, _without_paths, _fewer_inputs, _fewer_channels, _emptied):
        made = make(trial)
        while True:
            try:
                candidate = next(made, None)
            except ValueError:  # a generator that raises has ended
                break
            if candidate is None:
                break
            yield candidate


def _alone(trial: Trial) -> Iterator[Trial]:
    """One layer, which reads its source's levels from the input."""
    network = trial.network
    for layer in network.layers:
        for source in dict.fromkeys(path.source for path in layer.paths):
            paths = tuple(
                replace(path, source=INPUT) for path in layer.paths if path.source == source
            )
            kept = replace(layer, paths=paths)
            if source == INPUT:
                given, inputs = network.input, trial.inputs
            else:
                bits = plane_count(network.by_name[source].capacity)
                shape = network.by_name[source].output_shape
                given, inputs = Input(shape=shape, static=False, bits=bits), _levels(trial, source)
            for layers in _with_readout((kept,)):
                yield from _tried(replace(trial, inputs=inputs), input=given, layers=layers)


def _levels(trial: Trial, name: str) -> np.ndarray:
    """The levels that golden emits in a layer, as inputs."""
    if trial.inputs.ndim == 4 and not trial.network.input.static:  # one recording
        stream = Stream(trial.network)
        return np.stack([stream.step(frame).levels[name] for frame in trial.inputs])
    levels = golden.run(trial.network, trial.inputs, keep="levels")
    return np.stack([levels.emitted(number)[name] for number in range(len(trial.inputs))])


def _shortened(trial: Trial) -> Iterator[Trial]:
    """Only the first layers, or all layers except one; its readers then read its source."""
    layers = trial.network.layers
    for count in range(1, len(layers)):
        for kept in _with_readout(layers[:count]):
            yield from _tried(trial, layers=kept)
    for left in layers[:-1]:
        kept = tuple(
            replace(layer, paths=tuple(_rewired(path, left) for path in layer.paths))
            for layer in layers
            if layer is not left
        )
        yield from _tried(trial, layers=kept)


def _rewired(path: NetworkPath, left: Layer) -> NetworkPath:
    return replace(path, source=left.paths[0].source) if path.source == left.name else path


def _with_readout(layers: tuple[Layer, ...]) -> Iterator[tuple[Layer, ...]]:
    """The layers on which the last one depends, with a readout added if the last is none itself."""
    needed, kept = {layers[-1].name}, []
    for layer in reversed(layers):
        if layer.name in needed:
            kept.insert(0, layer)
            needed |= {path.source for path in layer.paths}
    last = kept[-1]
    if last.neuron is None:
        yield tuple(kept)
        return
    channels, height, width = last.output_shape
    for weight in (
        np.ones((1, channels, height, width), np.int8),
        np.eye(channels, dtype=np.int8)[:, :, None, None],
        np.ones(channels, np.int8),
    ):
        path = NetworkPath(source=last.name, weight=weight)
        outputs = path.output_shape(last.output_shape)
        bias = np.zeros(outputs[0], np.int64)
        readout = Layer(
            name="readout", shape=outputs, paths=(path,), bias=bias, fraction_bits=0, neuron=None
        )
        yield (*kept, readout)
    yield (*kept[:-1], replace(last, neuron=None, pool=None))


def _without_paths(trial: Trial) -> Iterator[Trial]:
    for layer in trial.network.layers:
        for path in layer.paths if len(layer.paths) > 1 else ():
            paths = tuple(other for other in layer.paths if other is not path)
            yield from _exchanged(trial, layer, replace(layer, paths=paths))


def _fewer_inputs(trial: Trial) -> Iterator[Trial]:
    count, network = len(trial.inputs), trial.network
    for part in (slice(count // 2), slice(count // 2, None), slice(count - 1)):
        if len(trial.inputs[part]):
            yield replace(trial, inputs=trial.inputs[part])
    for timesteps in dict.fromkeys((1, network.timesteps // 2, network.timesteps - 1)):
        if not timesteps:
            continue
        inputs = trial.inputs if trial.inputs.ndim == 4 else trial.inputs[:, :timesteps]
        yield from _tried(replace(trial, inputs=inputs), timesteps=timesteps)


def _fewer_channels(trial: Trial) -> Iterator[Trial]:
    """Layers with half of their channels, or one fewer."""
    network = trial.network
    for layer in network.layers:
        count = layer.shape[0]
        for kept in dict.fromkeys((count // 2, count - 1)):
            if not kept:
                continue
            layers = tuple(
                _cut(other, kept)
                if other is layer
                else replace(
                    other, paths=tuple(_cut_input(path, layer, kept) for path in other.paths)
                )
                for other in network.layers
            )
            yield from _tried(trial, layers=layers)


def _cut(layer: Layer, kept: int) -> Layer:
    """A layer's first channels; with an identity path the result is not valid, and is refused."""
    neuron = layer.neuron
    if neuron is not None:
        parts: dict[str, Integers] = {name: vec[:kept] for name, vec in neuron.vectors.items()}
        neuron = replace(neuron, **parts)
    return replace(
        layer,
        shape=(kept, *layer.shape[1:]),
        paths=tuple(replace(path, weight=path.weight[:kept]) for path in layer.paths),
        bias=layer.bias[:kept],
        neuron=neuron,
        scale=None,
    )


def _cut_input(path: NetworkPath, layer: Layer, kept: int) -> NetworkPath:
    if path.source != layer.name or path.is_identity:
        return path
    return replace(path, weight=path.weight[:, :kept])


def _emptied(trial: Trial) -> Iterator[Trial]:
    """Without pools, or with some biases, weights or inputs set to 0."""
    for layer in trial.network.layers:
        yield from _exchanged(trial, layer, replace(layer, pool=None))
        yield from _exchanged(trial, layer, replace(layer, bias=np.zeros_like(layer.bias)))
        for path in layer.paths:
            for changed in (
                replace(path, pool=None),
                *(replace(path, weight=weight) for weight in _halves(path.weight)),
            ):
                paths = tuple(changed if other is path else other for other in layer.paths)
                yield from _exchanged(trial, layer, replace(layer, paths=paths))
    for inputs in _halves(trial.inputs):
        yield replace(trial, inputs=inputs)


def _halves(array: np.ndarray) -> Iterator[np.ndarray]:
    """The array with some of its nonzero values set to 0: all, a half or an eighth of them."""
    places = np.flatnonzero(array)
    for parts in (1, 2, 8):
        for part in np.array_split(places, parts):
            emptied = array.copy()
            emptied.flat[part] = 0
            yield emptied


def _exchanged(trial: Trial, old: Layer, new: Layer) -> Iterator[Trial]:
    layers = tuple(new if layer is old else layer for layer in trial.network.layers)
    yield from _tried(trial, layers=layers)


def _tried(trial: Trial, **changes: object) -> Iterator[Trial]:
    """The trial with a changed network, if it is valid."""
    try:
        network: Network = replace(trial.network, **changes)  # type: ignore[arg-type]
        network.check_ranges()
    except ValueError:
        return
    yield replace(trial, network=network)
