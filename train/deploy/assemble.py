"""Assembles the integer network of a model: checks it, rounds it, and compares it with the model.

`fold`, `rounding` and `layer` have the arithmetic of a layer; this file handles the whole network.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from lbq_hw import numeric
from lbq_hw.network import INPUT, Layer, Network, NetworkError
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import agreement
from lbq_hw.train.deploy.agreement import Agreement, DisagreementError
from lbq_hw.train.deploy.calibrate import calibrated
from lbq_hw.train.deploy.fold import Floats, array, number
from lbq_hw.train.deploy.input import border_levels, border_width, integer_input
from lbq_hw.train.deploy.layer import fraction_bits, integer_layer
from lbq_hw.train.deploy.rounding import Quantized, learned_bits, quantize
from lbq_hw.train.deploy.violations import find_violations
from lbq_hw.train.graph import (
    READOUT,
    Analysis,
    GraphError,
    Population,
    Violation,
    counts_spikes,
    terms,
)
from lbq_hw.train.graph.trace import Traced, analyze, trace
from lbq_hw.train.neurons import UniformReLU

DEFAULT_WEIGHT_BITS = 8
PRECISE = 0.02  # a threshold or an identity weight with a larger error gets a note
PRECISE_BORDER = 0.004  # of full scale
FEW_FRACTION_BITS = 8  # more only if the network would otherwise differ from its model

Made = TypeVar("Made")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Export:
    """An exported network with the rounded weights of its layers, its comparison with the module,
    the same comparison without calibration (None if it was not calibrated), and notes of one
    sentence each."""

    network: Network
    quantized: Mapping[str, Quantized]
    agreement: Agreement
    uncalibrated: Agreement | None
    notes: tuple[str, ...]


def build(
    model: nn.Module,
    spec: InputSpec,
    *,
    name: str,
    weight_bits: int | None,
    fraction: int | None,
    decay_bits: int,
    meta: Mapping[str, Any] | None,
    samples: NDArray[np.uint8] | None,
    most_different: float | None,
    calibration: NDArray[np.uint8] | None = None,
    class_names: Sequence[str] = (),
    head: str = "classes",
) -> Export:
    """As `train.export.integer_network`, with all intermediate results."""
    root = trace(model)
    found = analyze(root, spec)
    violations = [*found.violations, *find_violations(found, spec)]
    if violations:
        raise GraphError(violations)
    trained = _most_learned_bits(found)
    bits = weight_bits if weight_bits is not None else trained or DEFAULT_WEIGHT_BITS
    numeric.weight_limit(bits)
    quantized = _each(found, lambda population: quantize(population, spec, bits))
    wanted = fraction_bits([(t, quantized[n].scale) for n, t in _thresholds(found)])
    rounded = trained is None or trained > bits
    meta = dict(meta or {})
    if head == agreement.VALUES or any(map(_is_joined, found.populations)):
        meta["head"] = agreement.VALUES
    most = most_different
    if most is None:
        most = agreement.MOST_ROUNDED if rounded else agreement.MOST_DIFFERENT

    def attempt(fraction: int) -> Export:
        return _build(
            root,
            found,
            spec,
            quantized,
            name=name,
            bits=bits,
            fraction=fraction,
            decay_bits=decay_bits,
            meta=meta,
            samples=samples,
            calibration=calibration,
            class_names=tuple(class_names),
        )

    chosen = min(wanted, FEW_FRACTION_BITS) if fraction is None else fraction
    export, notes = attempt(chosen), []
    if fraction is None and wanted > chosen and export.agreement.largest > most:
        few = export.agreement
        export = attempt(wanted)
        notes.append(
            f"{few.worst}: the network has {wanted} fraction bits, since {100 * few.largest:.1f} % "
            f"of its {_parts(few.worst)} would differ from the model's with {chosen}"
        )
        chosen = wanted
    if export.agreement.largest > most:
        mend = _mend(export, spec, bits, rounded=rounded, short=wanted if wanted > chosen else None)
        raise _disagreement(export.agreement, most, mend)
    return dataclasses.replace(export, notes=(*root.notes, *notes, *export.notes))


def _most_learned_bits(found: Analysis) -> int | None:
    """The most weight bits that a layer was trained with, None for float weights."""
    learned = map(learned_bits, found.populations)
    return max((bits for bits in learned if bits is not None), default=None)


def _fewer_bits(own: int | None, bits: int, trained: int | None) -> int | None:
    """The weight bits of a layer that was trained with fewer than others, and than the network's
    `bits`; else None.
    """
    return own if own is not None and trained is not None and own < min(bits, trained) else None


def _build(
    root: Traced,
    found: Analysis,
    spec: InputSpec,
    quantized: Mapping[str, Quantized],
    *,
    name: str,
    bits: int,
    fraction: int,
    decay_bits: int,
    meta: dict[str, Any],
    samples: NDArray[np.uint8] | None,
    calibration: NDArray[np.uint8] | None,
    class_names: tuple[str, ...],
) -> Export:
    """The network with so many fraction bits, compared with its model."""
    border = border_width(found, spec)
    trained = _most_learned_bits(found)

    def layer(population: Population, quantized: Quantized) -> Layer:
        made = integer_layer(
            population,
            quantized,
            spec,
            fraction=0 if counts_spikes(population) else fraction,
            decay_bits=decay_bits,
            max_pool=found.max_pool_of(population.name),
            weight_bits=_fewer_bits(learned_bits(population), bits, trained),
        )
        return _without_padding(made) if border else made

    def layers(quantized: Mapping[str, Quantized]) -> tuple[Layer, ...]:
        return tuple(_each(found, lambda p: layer(p, quantized[p.name])).values())

    network = Network(
        name=name,
        input=integer_input(spec, border),
        timesteps=found.timesteps,
        weight_bits=bits,
        layers=layers(quantized),
        meta=meta,
        class_names=class_names,
    )
    _check_ranges(network)
    inputs = agreement.samples(network) if samples is None else samples
    agreement.check_given(root, spec, inputs)
    compared, uncalibrated = agreement.compare(found, root, spec, network, inputs), None
    if calibration is not None:
        quantized = calibrated(found, root, spec, network, quantized, calibration, layer)
        network = dataclasses.replace(network, layers=layers(quantized))
        uncalibrated = compared
        compared = agreement.compare(found, root, spec, network, inputs)
    notes = [
        *_threshold_notes(network, found),
        *_leak_notes(network, found),
        *_identity_notes(quantized),
    ]
    if border:
        notes += _border_notes(network, spec, compared)
    return Export(
        network=network,
        quantized=quantized,
        agreement=compared,
        uncalibrated=uncalibrated,
        notes=tuple(notes),
    )


def _check_ranges(network: Network) -> None:
    try:
        network.check_ranges()
    except NetworkError as error:
        raise GraphError(
            [
                Violation(
                    path=network.name,
                    reason=str(error),
                    mend="check whether a norm or a gamma has diverged, or use fewer fraction bits",
                )
            ]
        ) from None


def _each(found: Analysis, make: Callable[[Population], Made]) -> dict[str, Made]:
    """A value for every population, by name; numbers that no integer holds become violations."""
    made, violations = {}, []
    for population in found.populations:
        try:
            made[population.name] = make(population)
        except (ValueError, OverflowError) as error:
            violations.append(
                Violation(
                    path=population.name,
                    reason=f"its weights, norms or bias are out of proportion to its step: {error}",
                    mend="check whether its norm or its gamma has diverged, and train it again",
                )
            )
    if violations:
        raise GraphError(violations)
    return made


def _is_joined(population: Population) -> bool:
    """Whether it is a readout of several concatenated outputs, which are not classes."""
    return any(term.placed for term in terms(population.current))


def _thresholds(found: Analysis) -> Iterator[tuple[str, Floats]]:
    """The threshold of every population, by name: one number, or one per channel."""
    for population in found.populations:
        if population.neuron is not None:
            yield population.name, array(population.neuron.threshold)


def _without_padding(layer: Layer) -> Layer:
    """A layer whose input contains its padding, as a border."""
    paths = (
        dataclasses.replace(path, padding=(0, 0)) if path.source == INPUT else path
        for path in layer.paths
    )
    return dataclasses.replace(layer, paths=tuple(paths))


def _parts(layer: str) -> str:
    return "levels" if layer != READOUT else "outputs"


def _disagreement(compared: Agreement, most: float, mend: str) -> DisagreementError:
    worst = compared.worst
    return DisagreementError(
        f"{worst}: {100 * compared.largest:.1f} % of its {_parts(worst)} differ from the model's "
        f"on the same inputs ({compared.samples} samples), and at most {100 * most:g} % may; "
        f"{mend}, or allow it with most_different = 1"
    )


def _mend(export: Export, spec: InputSpec, bits: int, *, rounded: bool, short: int | None) -> str:
    """The remedy for a network that differs; `short`: the fraction bits that it should have."""
    network, worst = export.network, export.agreement.worst
    reads_input = any(path.source == INPUT for path in network.by_name[worst].paths)
    off = _border_off(network, spec)
    if reads_input and off / spec.full_scale > PRECISE_BORDER:
        return (
            f"the border that stands for padding is up to {off:.2f} levels off the mean, at "
            f"{spec.bits} input bits: use more input bits, a mean that is a whole level, no "
            "padding in the first layer, or no mean"
        )
    if short is not None:
        return f"give {short} fraction bits"
    if rounded:
        return f"use more than {bits} bits, or train with quantized weights"
    return "give more fraction bits, and report a defect if that does not help"


def _border_off(network: Network, spec: InputSpec) -> float:
    """The distance in levels from the border to the mean; 0 without a border."""
    if not network.input.border:
        return 0.0
    return float(np.abs(border_levels(spec) - np.array(network.input.border_value)).max())


def _threshold_notes(network: Network, found: Analysis) -> Iterator[str]:
    uniform = {p.name for p in found.populations if isinstance(p.neuron, UniformReLU)}
    for name, threshold in _thresholds(found):
        layer = network.by_name[name]
        assert layer.neuron is not None
        assert layer.scale is not None
        if name in uniform:
            continue  # sums are integers; they pass thresholds exactly where the model's do
        exact = 2.0**layer.fraction_bits * threshold / layer.scale
        off = np.abs(layer.neuron.theta - exact) / exact
        if off.max() > PRECISE:
            clamped = int(np.sum(exact < 0.5))
            yield (
                f"{name}: thresholds are up to {100 * off.max():.0f} % off in "
                f"{int(np.sum(off > PRECISE))} of {len(off)} channels, with "
                f"{layer.fraction_bits} fraction bits"
                + (f" ({clamped} would round to 0 and are 1)" if clamped else "")
            )


def _leak_notes(network: Network, found: Analysis) -> Iterator[str]:
    for population in found.populations:
        theirs, ours = population.neuron, network.by_name[population.name].neuron
        if theirs is None or ours is None or not theirs.stateful:
            continue
        beta, leak = number(theirs.beta), ours.decay / 2**ours.decay_bits
        if 0 < beta < 1 and abs(_steps(leak) - _steps(beta)) > PRECISE * _steps(beta):
            became = f"{ours.decay}/{2**ours.decay_bits}" if leak < 1 else "1, which is no leak"
            yield (
                f"{population.name}: its beta of {beta:.6g} became {became}, so a membrane decays "
                f"to 1/e in {_steps(leak):.3g} timesteps instead of {_steps(beta):.3g}: give more "
                "decay bits"
            )


def _steps(leak: float) -> float:
    """Timesteps until a membrane has decayed to 1/e."""
    return -1 / math.log(leak) if 0 < leak < 1 else math.inf if leak else 0.0


def _identity_notes(quantized: Mapping[str, Quantized]) -> Iterator[str]:
    for name, layer in quantized.items():
        if layer.identity_error > PRECISE:
            yield (
                f"{name}: the weights of its identity path are up to "
                f"{100 * layer.identity_error:.0f} % off"
            )


def _border_notes(network: Network, spec: InputSpec, compared: Agreement) -> Iterator[str]:
    """If a mean is subtracted, zero padding becomes a border of mean pixels, which are rounded."""
    off = _border_off(network, spec)
    if off / spec.full_scale <= PRECISE_BORDER:
        return
    for layer in network.layers:
        if any(path.source == INPUT for path in layer.paths):
            share = compared.layers[layer.name]
            yield (
                f"{layer.name}: the border that stands for padding is up to {off:.2f} levels off "
                f"the mean, at {spec.bits} input bits; {100 * share:.1f} % of the layer's levels "
                f"differ from the model's, and logits by up to {100 * compared.logits:.0f} % of "
                "the largest"
            )
