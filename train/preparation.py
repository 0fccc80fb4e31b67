"""Turn a plain model into the form that is trained, which equals the deployed form.

Neurons emit integer levels, which bfloat16 holds exactly. Every convolution or linear layer that
reads levels absorbs their gamma, and every other consumer gets ``levels * gamma``. With
`weight_bits` the weights are quantized in the same way as in export.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

from torch import fx, nn

from lbq_hw.train import step_group
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import agreement
from lbq_hw.train.deploy.violations import find_violations
from lbq_hw.train.graph import Analysis, GraphError, Levels, Synapse
from lbq_hw.train.graph.plain import hooks
from lbq_hw.train.graph.trace import analyze, trace
from lbq_hw.train.layers import Scale
from lbq_hw.train.quantize import Deployed, bits_by_layer, stand_in
from lbq_hw.train.step_group import Bound, StepGroup


def prepare(
    model: nn.Module,
    spec: InputSpec,
    *,
    absorb: bool = True,
    weight_bits: int | Mapping[str, int] | None = None,
    trained_only: bool = False,
) -> fx.GraphModule:
    """A graph module that computes what `model` does, with its parameter names, ready to train.

    The model itself is not changed. `weight_bits` is one number for all layers, or one per pattern
    of their paths; the last pattern that matches counts: ``{"*": 4, "layer3.*": 2}``. It adds
    parameters called ``<layer>.step``.
    Raises `GraphError` with every violation if the model has no integer form. For a model that is
    `trained_only`, with float weights and never exported, few violations are errors. Raises
    `DisagreementError` if the layers that were read do not compute the same as the model.
    """
    hooked = [*hooks(model)]
    if hooked:
        raise GraphError(hooked)  # a model with some kinds of hooks cannot be copied
    root = trace(copy.deepcopy(model), training=True)
    found = analyze(root, spec)
    violations = [*found.violations, *find_violations(found, spec)]
    groups = step_group.find(found, spec)
    if weight_bits is not None:
        violations = [*found.violations, *find_violations(found, spec)]
    if trained_only and weight_bits is None:
        violations = [violation for violation in violations if not violation.trainable]
    if violations:
        raise GraphError(violations)
    bits: dict[str, int] | None = None
    if weight_bits is not None:
        paths = [binding.synapse.path for group in groups for binding in group.bindings]
        bits = bits_by_layer(paths, weight_bits)
        if len(set(spec.std)) > 1:
            raise ValueError(
                "quantized weights need one input scale for all channels, not std = "
                f"{spec.std!r}: scale inputs without a per-channel std"
            )
    agreement.check_given(root, spec, agreement.noise(spec, found.timesteps))
    replaced = _replace_synapses(root, groups, absorb=absorb, bits=bits)
    if absorb:
        _emit_levels(root, found, absorbing=replaced)
    root.recompile()
    return fx.GraphModule(root, root.graph)


def _replace_synapses(
    root: fx.GraphModule, groups: list[Bound], *, absorb: bool, bits: Mapping[str, int] | None
) -> set[str]:
    """Replace all layers that reach a population by deployed layers; returns their paths."""
    layers: dict[str, Deployed] = {}
    for group in groups:
        for binding in group.bindings:
            synapse = binding.synapse
            layer = stand_in(synapse.module)
            layer.deploy(
                source=synapse.levels.neuron,
                absorb=absorb and _has_levels(synapse.levels),
                bits=None if bits is None else bits[synapse.path],
                per_tensor=group.shared,
            )
            layers[synapse.path] = layer
            parent, _, name = synapse.path.rpartition(".")
            setattr(root.get_submodule(parent), name, layer)
        if bits is not None and not group.alone:
            StepGroup(group, layers)
    return set(layers)


def _has_levels(levels: Levels) -> bool:
    return levels.neuron is not None and levels.neuron.capacity > 0


def _emit_levels(root: fx.GraphModule, found: Analysis, *, absorbing: set[str]) -> None:
    for node in list(root.graph.nodes):
        levels = found.values.get(node)
        if not isinstance(levels, Levels) or not _has_levels(levels):
            continue
        assert levels.neuron is not None
        levels.neuron.emit_levels = True
        takers = [user for user in node.users if _wants_values(user, levels, found, absorbing)]
        if not takers:
            continue
        name = f"{node.name!s}_value"
        root.add_submodule(name, Scale(levels.neuron))
        with root.graph.inserting_after(node):
            scaled = root.graph.call_module(name, (node,))
        for user in takers:
            user.replace_input_with(node, scaled)


def _wants_values(user: fx.Node, levels: Levels, found: Analysis, absorbing: set[str]) -> bool:
    """Whether a consumer needs gamma * S, as all do except absorbing layers and nodes that pass
    levels on.
    """
    value = found.values.get(user)
    if isinstance(value, Levels) and value.source == levels.source:
        return False
    return not (isinstance(value, Synapse) and value.path in absorbing)
