"""Parts of the report from the project's own objects; nothing here runs a network or a tool."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lbq_hw import file, isa
from lbq_hw.compiler import Program
from lbq_hw.config import CoreConfig
from lbq_hw.datasets import meaning
from lbq_hw.datasets.fitting import Samples
from lbq_hw.golden import Trace, energy
from lbq_hw.golden.counts import Counts
from lbq_hw.network import Network
from lbq_hw.report.facts import (
    Answered,
    Answers,
    Block,
    Core,
    Cycles,
    LayerCycles,
    LayerNeurons,
    LayerOperations,
    Memory,
    MemoryUse,
    Mistake,
    Model,
    Neurons,
    Operations,
    Price,
    Proof,
    Simulation,
)
from lbq_hw.report.pictures import picture

_Kind = TypeVar("_Kind")
SHOWN, MISTAKES = 16, 8
"""Number of inputs, and of kinds of mistakes, on the page."""
_STALLS = ("scanner_stalls", "neuron_stalls")


def model(network: Network, *, evaluation: Mapping[str, Any] | None = None) -> Model:
    """The network, with accuracies from the output of ``lbq_hw.evaluate --json`` for this network.

    An evaluation of another network (its digest differs) is ignored.
    """
    digest = file.digest(network)
    seen = evaluation if evaluation and evaluation["digest"] == digest else {}
    return Model(
        name=network.name,
        digest=digest,
        timesteps=network.timesteps,
        capacity=max(layer.capacity for layer in network.layers),
        weight_bits=network.weight_bits,
        parameters=network.parameters,
        input_shape=network.input.shape,
        layers=tuple(layer.name for layer in network.layers),
        dataset=seen.get("dataset") or network.meta.get("dataset"),
        accuracy=seen.get("accuracy"),
        accuracy_images=seen.get("images"),
        accuracy_split=seen.get("split"),
        float_accuracy=network.meta.get("float_accuracy"),
        float_split=network.meta.get("float_split"),
        class_names=meaning.class_names(network),
    )


def answers(
    network: Network, samples: Samples, classes: NDArray[np.int64], *, drawn_of: int | None = None
) -> Answers | None:
    """Golden's answers to labelled samples; None if there are no labels, or the head gives values.

    `classes` are the answers to all samples, for recordings after each timestep: (T, n).

    At most `SHOWN` inputs are shown: up to half of them mistakes, then the first of each class.
    """
    labels = samples.labels
    if labels is None or not len(labels) or network.classes < 2:
        return None
    by_step: tuple[float, ...] = ()
    if classes.ndim > 1:
        by_step = tuple((classes == labels).mean(axis=1).tolist())
        classes = classes[-1]
    count = network.classes
    confusion = np.zeros((count, count), np.int64)
    np.add.at(confusion, (labels, classes), 1)
    wrong = confusion - np.diag(np.diag(confusion))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES]
    pairs = [divmod(int(at), count) for at in order if wrong.flat[at]]
    missed = np.flatnonzero(labels != classes)[: SHOWN // 2]
    hit = np.flatnonzero(labels == classes)
    first = hit[np.unique(labels[hit], return_index=True)[1]]
    others = np.setdiff1d(hit, first)
    chosen = [*missed, *first, *others][:SHOWN]
    return Answers(
        dataset=samples.name,
        split=samples.split,
        images=len(labels),
        drawn_of=drawn_of,
        right=int((labels == classes).sum()),
        names=meaning.class_names(network),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        mistakes=tuple(
            Mistake(label=label, answer=answer, count=int(wrong[label, answer]))
            for label, answer in pairs
        ),
        samples=tuple(
            Answered(
                label=int(labels[at]), answer=int(classes[at]), png=picture(samples.images[at])
            )
            for at in chosen
        ),
        by_step=by_step,
    )


def core(config: CoreConfig) -> Core:
    return Core(config=config, digest=config.digest)


def predicted(means: Mapping[str, Any]) -> Cycles:
    """Made from the object of `lbq_hw.cycles.means`; its key `source`, if present, names the
    dataset.
    """
    layers = tuple(_part(LayerCycles, entry) for entry in means["layers"])
    return _part(Cycles, means, source="model", layers=layers, dataset=means.get("source"))


def _part(kind: type[_Kind], values: Mapping[str, Any], **others: Any) -> _Kind:
    """A part from the fields with the same names in a step's object, and from `others`."""
    known = {field.name for field in fields(kind)}  # pyright: ignore[reportArgumentType]
    return kind(**{key: value for key, value in values.items() if key in known} | others)


def cycles(simulated: Mapping[str, Any], *, model: Cycles | None = None) -> Cycles:
    """From the object of ``python -m sim --json``.

    `model`, the prediction for the same images, adds stalls, bounds and limit to every layer with
    equal cycles. All layers should be equal.
    """
    twins = {layer.name: layer for layer in model.layers} if model else {}
    layers = []
    for entry in simulated["layers"]:
        layer = _part(LayerCycles, entry)
        twin = twins.get(layer.name)
        if twin is not None and (twin.cycles, twin.events) == (layer.cycles, layer.events):
            added = {name: getattr(twin, name) for name in (*_STALLS, "bounds", "limit")}
            layer = replace(layer, **added)
        layers.append(layer)
    dataset = model.dataset if model else None
    return _part(Cycles, simulated, source="rtl", layers=tuple(layers), dataset=dataset)


def simulation(simulated: Mapping[str, Any], *, simulator: str) -> Simulation:
    """From the object of ``python -m sim --json``."""
    rate = simulated["sim_cycles_per_second"]
    return _part(Simulation, simulated, simulator=simulator, cycles_per_second=rate)


def operations(counts: Counts) -> Operations:
    layers = (_part(LayerOperations, layer.summary(), shape=layer.shape) for layer in counts.layers)
    prices = (
        Price(prices=prices, execution=execution, mj=entry["mj"])
        for prices, executions in energy.report(counts).items()
        for execution, entry in executions.items()
    )
    return Operations(images=counts.images, layers=tuple(layers), energy=tuple(prices))


class Levels:
    """Counts levels while golden runs: ``golden.run(network, raw, observe=levels)``."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._images = 0
        self._histograms = {
            layer.name: np.zeros(layer.capacity + 1, np.int64)
            for layer in network.layers
            if layer.neuron is not None
        }

    def __call__(self, trace: Trace) -> None:
        if trace.levels is None:
            return
        if trace.name in self._histograms:
            counts = self._histograms[trace.name]
            counts += np.bincount(trace.levels.reshape(-1), minlength=len(counts))
        else:
            self._images += trace.levels.shape[1]

    def neurons(self) -> Neurons:
        layers = []
        for name, histogram in self._histograms.items():
            layer = self._network.by_name[name]
            assert layer.neuron is not None
            theta = layer.neuron.theta
            layers.append(
                LayerNeurons(
                    name=name,
                    capacity=layer.capacity,
                    gamma=layer.gamma,
                    theta=(int(theta.min()), int(theta.max())),
                    histogram=tuple(int(count) for count in histogram),
                )
            )
        return Neurons(images=self._images, layers=tuple(layers))


def memory(program: Program) -> Memory:
    config = program.config
    widths = {
        "plane_words": ("activations", config.word),
        "weight_rows": ("weights", config.lanes * config.weight_bits),
        "channels": ("neuron parameters", isa.PARAM.width(config)),
        "logits": ("logits", config.membrane_bits),
        **{
            name: (f"{record.name} table", record.width(config))
            for name, record in isa.TABLES.items()
        },
    }
    tensors = (
        Block(name=t.name, base=t.base, end=t.end, born=t.born, dies=t.dies)
        for t in program.tensors.values()
    )
    weights = (
        Block(
            name=info.name,
            base=info.weight_first,
            end=info.weight_first + info.weight_rows,
            born=index,
            dies=index,
        )
        for index, info in enumerate(program.info)
    )
    return Memory(
        memories=tuple(
            MemoryUse(
                field=field,
                title=widths[field][0],
                used=used,
                size=getattr(config, field),
                bits=widths[field][1],
            )
            for field, used in program.usage.items()
        ),
        tensors=tuple(tensors),
        weights=tuple(weights),
        layers=tuple(info.name for info in program.info),
    )


def proofs(program: Program) -> tuple[Proof, ...]:
    return tuple(
        Proof(layer=info.name, acc_bits=info.acc_bits, membrane_bits=info.membrane_bits)
        for info in program.info
    )


def digests(files: Sequence[Path]) -> dict[str, str]:
    """SHA-256 of each file, by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
