"""The cost of a network's events, as a part of the loss.

A core spends its cycles on accumulations, as many per level as a neuron has synapses. The activity
of a network is the mean level over all accumulations,

    sum over layers of MACs * mean(level of their input) / sum over layers of MACs

over all layers that read levels. Pixels are left out, because training does not change them. A
level is an upper bound of the number of its set bits, and unlike that number it has a gradient.
``train.activity`` is the weight of the activity in the loss; `train.optim.activity_weight` ramps it
up.

Not every event costs time: if a core waits for the weights of a layer, as in the last layers of a
network in external memory, more events in this layer only fill the wait. ``train.activity_layers``
restricts the activity to some layers; their shares still refer to all accumulations.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, fx, nn

from lbq_hw.train.data import InputSpec
from lbq_hw.train.graph import Levels, Synapse
from lbq_hw.train.graph.trace import analyze
from lbq_hw.train.neurons import Neuron
from lbq_hw.train.settings.schema import ConfigError


class MeanLevel(nn.Module):
    """``weight * mean(level)`` of a neuron's output, in float32.

    The output's gradient in gamma is the gradient of ``gamma * S``. The gradient of S alone is
    smaller by S / gamma, which is subtracted here: a larger step means fewer levels.
    """

    def __init__(self, neuron: Neuron, weight: float) -> None:
        super().__init__()
        # in a tuple, so that the neuron is registered only once: where it fires
        self._neuron = (neuron,)
        self.weight = weight

    def forward(self, sent: Tensor) -> Tensor:
        neuron = self._neuron[0]
        gamma = neuron.gamma.float()
        fixed = gamma.detach()
        mean = sent.mean(dtype=torch.float32)
        if not neuron.emit_levels:
            mean = mean / fixed
        return self.weight * (mean - mean.detach() * (gamma / fixed - 1))


def level_macs(model: fx.GraphModule, spec: InputSpec) -> dict[str, tuple[Levels, int]]:
    """For each layer that reads levels, by its path: its source, and its accumulations per timestep
    if all levels were 1, including taps of padding. For a prepared model, before norms and neurons
    are fused.
    """
    found = analyze(model, spec)
    macs: dict[str, tuple[Levels, int]] = {}
    for node, value in found.values.items():
        if isinstance(value, Synapse) and node.target == value.path:
            levels = value.levels
            places = math.prod(node.meta["shape"][2:])  # of the output, 1 for a linear layer
            taps = levels.sum_pool.taps if levels.sum_pool else 1
            if levels.neuron is not None:
                macs[value.path] = (levels, places * taps * value.module.weight.numel())
    return macs


def find_shares(
    model: fx.GraphModule, spec: InputSpec, within: Sequence[str] = ()
) -> dict[str, tuple[Neuron, float]]:
    """For each layer that reads levels, by its path: the neuron that sends them, and the layer's
    share of all accumulations. For a prepared model, before norms and neurons are fused.

    ``within``: paths of the modules whose layers count; empty means the whole model. ConfigError if
    one of them has no such layer.
    """
    macs = level_macs(model, spec)
    total = sum(count for _, count in macs.values())
    for part in within:
        if not any(f"{path}.".startswith(f"{part}.") for path in macs):
            names = ", ".join(macs)
            raise ConfigError(
                f"train.activity_layers: no layer that reads levels is or lies in {part!r}; the"
                f" layers are {names}"
            )
    wanted = tuple(f"{part}." for part in within) or ("",)
    return {
        path: (levels.neuron, count / total)
        for path, (levels, count) in macs.items()
        if levels.neuron is not None and f"{path}.".startswith(wanted)
    }


def with_activity(
    model: fx.GraphModule, shares: Mapping[str, tuple[Neuron, float]]
) -> fx.GraphModule:
    """A twin of the model, with the same parameters and buffers, that also returns its activity."""
    twin = fx.GraphModule(model, copy.deepcopy(model.graph))
    readers: dict[fx.Node, list[str]] = {}
    for node in twin.graph.nodes:
        if node.op == "call_module" and node.target in shares:
            readers.setdefault(node.all_input_nodes[0], []).append(node.target)
    parts: list[fx.Node] = []
    for source, paths in readers.items():
        neuron = shares[paths[0]][0]
        name = f"{source.name!s}_mean_level"
        twin.add_submodule(name, MeanLevel(neuron, sum(shares[path][1] for path in paths)))
        with twin.graph.inserting_after(source):
            parts.append(twin.graph.call_module(name, (source,)))
    (output,) = (node for node in twin.graph.nodes if node.op == "output")
    with twin.graph.inserting_before(output):
        total = parts[0]
        for part in parts[1:]:
            total = twin.graph.call_function(operator.add, (total, part))
    output.args = ((output.args[0], total),)
    twin.recompile()
    return twin
