"""Finds the parts of a model that can be trained but not deployed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from lbq_hw import numeric
from lbq_hw.network import INPUT
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy.input import input_paddings
from lbq_hw.train.deploy.rounding import trained_path
from lbq_hw.train.graph import READOUT, Analysis, Population, Synapse, Violation, terms
from lbq_hw.train.quantize import Deployed

_ROLES = {INPUT: "input", READOUT: "readout"}


def find_violations(found: Analysis, spec: InputSpec) -> list[Violation]:
    """Every reason why a model that can be trained has no integer form."""
    reasons: list[Violation] = []
    for population in found.populations:
        reasons += _neuron(population)
        reasons += _values(population)
        reasons += _scales(population, spec)
    return list(dict.fromkeys([*reasons, *_mean(found, spec)]))


def _neuron(population: Population) -> Iterator[Violation]:
    neuron, path = population.neuron, population.name
    if neuron is None:
        return
    if path in (INPUT, READOUT):
        yield Violation(
            path=path,
            reason=f"{path!r} is the name of the network's {_ROLES[path]}",
            mend="give the neuron another name",
        )
    if neuron.signed:
        yield Violation(
            path=path,
            reason=f"{type(neuron).__name__} emits negative levels",
            mend="use an LBQ neuron, whose levels are 0..N",
        )
    if neuron.trained_only:
        yield Violation(
            path=path,
            reason=f"{type(neuron).__name__} can only be trained: {neuron.trained_only}",
            mend="use an LBQ neuron, which subtracts one step whatever the level",
        )
    if neuron.capacity > numeric.MAX_CAPACITY:
        yield Violation(
            path=path,
            reason=f"its capacity is {neuron.capacity}",
            mend=f"use at most {numeric.MAX_CAPACITY} levels",
        )


def _values(population: Population) -> Iterator[Violation]:
    """Parameters that are not finite."""
    modules: dict[str, nn.Module] = {}
    for term in terms(population.current):
        if isinstance(term.origin, Synapse):
            modules[term.origin.path] = term.origin.module
        for norm in term.norms:
            modules[f"the {type(norm).__name__} before {population.name}"] = norm
    if population.neuron is not None:
        modules[population.name] = population.neuron
    for path, module in modules.items():
        tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        broken = [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]
        if broken:
            yield Violation(
                path=path,
                reason=f"{' and '.join(broken)} must be finite, and some values are not",
                mend="train it again from a checkpoint before it diverged",
            )


def _scales(population: Population, spec: InputSpec) -> Iterator[Violation]:
    """Weights that were quantized in another framework, with scales that do not match."""
    parts = [term for term in terms(population.current) if isinstance(term.origin, Synapse)]
    modules = [term.origin.module for term in parts if isinstance(term.origin, Synapse)]
    elsewhere = [
        isinstance(m, Deployed) and m.bits is not None and m.group is None for m in modules
    ]
    alone = len(parts) == 1 and population.neuron is not None
    if not parts or not all(elsewhere) or alone:
        return
    worth = [trained.worth for term in parts if (trained := trained_path(term, spec)) is not None]
    even = all(np.allclose(path, worth[0], rtol=1e-6, atol=0.0) for path in worth)
    one = population.neuron is not None or np.allclose(worth[0], worth[0][0], rtol=1e-6, atol=0.0)
    if not (even and one):
        yield Violation(
            path=population.name,
            reason="adds weights that were quantized with different scales",
            mend="use one scale for all added paths, and for all outputs of the last layer",
        )


def _mean(found: Analysis, spec: InputSpec) -> Iterator[Violation]:
    if not spec.mean:
        return
    paddings = input_paddings(found)
    if len(paddings) > 1 or any(v != h for v, h in paddings):
        yield Violation(
            path=INPUT,
            reason=(
                "a mean is subtracted, and the input is padded unevenly: "
                f"(rows, columns) of {', '.join(map(str, sorted(paddings)))}"
            ),
            mend="pad it alike in all layers and on all sides, or not at all, or use no mean",
        )
    pools = [levels.sum_pool for levels in found.consumed(INPUT) if levels.sum_pool is not None]
    if pools and {*paddings, *(pool.padding for pool in pools)} != {(0, 0)}:
        yield Violation(
            path=INPUT,
            reason="a mean is subtracted, and the input is both pooled and padded",
            mend="pool it without padding, or train without a mean",
        )
