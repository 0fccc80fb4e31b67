"""An integer network put together from a model: what may be deployed, how, and whether it agrees.

`train.fold` has the arithmetic of a layer; here is what concerns all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import fx, nn

from lbq_hw import numeric
from lbq_hw.network import INPUT, Network
from train import agreement, deployment
from train.agreement import Agreement, DisagreementError
from train.data import InputSpec
from train.fold import (
    Quantized,
    fraction_bits,
    integer_input,
    integer_layer,
    learned_bits,
    quantize,
)
from train.graph import READOUT, GraphError
from train.trace import analyze, trace

DEFAULT_WEIGHT_BITS = 8


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Export:
    """An exported network, what its layers were rounded to, how it compares with its module, and
    notes, a sentence each."""

    network: Network
    quantized: Mapping[str, Quantized]
    agreement: Agreement
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
) -> Export:
    """As `integer_network`, with all that was found on the way."""
    root = model if isinstance(model, fx.GraphModule) else trace(model)
    found = analyze(root, spec)
    violations = [*found.violations, *deployment.violations(found, spec)]
    if violations:
        raise GraphError(violations)
    trained = next((b for b in map(learned_bits, found.populations) if b is not None), None)
    bits = weight_bits if weight_bits is not None else trained or DEFAULT_WEIGHT_BITS
    numeric.weight_limit(bits)
    border = deployment.border(found, spec)
    quantized = {p.name: quantize(p, spec, bits) for p in found.populations}
    if fraction is None:
        fraction = fraction_bits(
            [
                (p.neuron.gamma.detach().double().item(), quantized[p.name].scale)
                for p in found.populations
                if p.neuron is not None
            ]
        )
    layers = []
    for population in found.populations:
        layer = integer_layer(
            population,
            quantized[population.name],
            spec,
            fraction=fraction,
            decay_bits=decay_bits,
            max_pool=found.max_pool_of(population.name),
        )
        if border:
            paths = tuple(
                dataclasses.replace(path, padding=(0, 0)) if path.source == INPUT else path
                for path in layer.paths
            )
            layer = dataclasses.replace(layer, paths=paths)
        layers.append(layer)
    network = Network(
        name=name,
        input=integer_input(spec, border),
        timesteps=found.timesteps,
        weight_bits=bits,
        layers=tuple(layers),
        meta=dict(meta or {}),
    )
    inputs = agreement.samples(network) if samples is None else samples
    compared = agreement.compare(found, root, spec, network, inputs)
    _check_agreement(compared, bits, most_different, rounded=trained is None or trained > bits)
    return Export(network=network, quantized=quantized, agreement=compared, notes=())


def _check_agreement(compared: Agreement, bits: int, most: float | None, *, rounded: bool) -> None:
    if most is None:
        most = agreement.MOST_ROUNDED if rounded else agreement.MOST_DIFFERENT
    worst = compared.worst
    share = compared.layers[worst]
    if share <= most:
        return
    parts = "levels" if worst != READOUT else "classes"
    mend = f"use more than {bits} bits, or train with quantized weights"
    if not rounded:
        mend = "give more fraction bits, and report a defect if that does not help"
    raise DisagreementError(
        f"{worst}: {100 * share:.1f} % of its {parts} differ from the model's on the same inputs "
        f"({compared.samples} samples), and at most {100 * most:g} % may; {mend}, or allow it with "
        "most_different = 1"
    )
