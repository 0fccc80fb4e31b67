"""Writes an integer network as a NIR graph, if NIR can express it.

Weights are the codes, in accumulator steps; a timestep is 1. NIR sets a membrane to v_reset and has
no reset by subtraction: if a network subtracts, the graph's metadata says so, and other readers
must be told. In NIR a membrane must pass its threshold. For neurons that reset to zero, the
threshold is written half a membrane step lower, so that passing and reaching it are the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import nir
import numpy as np

from lbq_hw.network import INPUT, Layer, Network, Path
from lbq_hw.train.graph import GraphError, Violation
from lbq_hw.train.nir.read import META

OUTPUT = "output"


def graph(network: Network) -> nir.NIRGraph:
    """The graph of a network; GraphError with every reason why there is none."""
    violations = list(_violations(network))
    if violations:
        raise GraphError(violations)
    nodes: dict[str, nir.NIRNode] = {
        INPUT: nir.Input(input_type={"input": np.array(network.input.tensor_shape)})
    }
    edges: list[tuple[str, str]] = []
    for layer in network.layers:
        name = OUTPUT if layer.neuron is None else layer.name
        for number, path in enumerate(layer.paths):
            place = path.source
            for kind, node in _path_nodes(network, layer, path, first=number == 0):
                made = f"{layer.name}_{kind}{number or ''}"
                nodes[made] = node
                edges.append((place, made))
                place = made
            edges.append((place, name))
        nodes[name] = (
            nir.Output(output_type={"output": np.array(layer.shape)})
            if layer.neuron is None
            else _neuron(layer)
        )
    told = {"dt": 1.0, "reset": _reset(network), "strict": _resets_to_zero(network)}
    return nir.NIRGraph(
        nodes=nodes, edges=edges, metadata={META: json.dumps(told)}, type_check=False
    )


def notes(network: Network) -> Iterator[str]:
    """What another reader of the graph should be told, one sentence each."""
    if not _resets_to_zero(network):
        yield (
            "the network resets by subtraction, which NIR cannot say: set other readers to "
            "subtract the threshold when a membrane reaches it"
        )
    if any(layer.neuron and layer.neuron.decay_bits for layer in network.layers):
        yield "the network rounds leaked membranes down; other readers do not"
    if network.input.bits + network.input.shift > 1:
        yield "the graph's input are the integer levels of pixels, not their values"


def _violations(network: Network) -> Iterator[Violation]:
    if network.input.border:
        yield Violation(
            path=INPUT, reason="it has a border", mend="train without a mean of the pixels"
        )
    kinds = {layer.neuron.to_zero for layer in network.layers if layer.neuron is not None}
    if len(kinds) > 1:
        yield Violation(
            path="network",
            reason="some of its layers reset to zero and some by subtraction",
            mend="use one reset in all of them",
        )
    for layer in network.layers:
        if layer.pool is not None:
            yield Violation(path=layer.name, reason="NIR has no max-pool", mend="use a sum pool")
        if layer.neuron is None:
            continue
        for rule in layer.neuron.rules:
            if not rule.in_nir:
                yield Violation(
                    path=layer.name,
                    reason=f"NIR has no {rule.neurons}",
                    mend="keep the network as an .lbq file",
                )
        if layer.neuron.capacity > 1:
            yield Violation(
                path=layer.name,
                reason=f"NIR has no bursts, but it emits up to {layer.neuron.capacity} levels",
                mend="train it with a capacity of 1",
            )
        if not layer.neuron.to_zero and not np.array_equal(layer.neuron.theta, layer.neuron.reset):
            yield Violation(
                path=layer.name,
                reason="its reset is not its threshold",
                mend="reset by the threshold, or to zero",
            )


def _resets_to_zero(network: Network) -> bool:
    return any(layer.neuron is not None and layer.neuron.to_zero for layer in network.layers)


def _reset(network: Network) -> str:
    return "zero" if _resets_to_zero(network) else "subtract"


def _path_nodes(
    network: Network, layer: Layer, path: Path, *, first: bool
) -> Iterator[tuple[str, nir.NIRNode]]:
    """The nodes of a path, in order; the first path of a layer includes the bias."""
    shape = network.source_shape(path)
    if path.pool is not None:
        sizes = (np.array(size) for size in (path.pool.kernel, path.pool.stride, path.pool.padding))
        yield "pool", nir.SumPool2d(*sizes)
        shape = path.pooled_shape(shape)
    bias = layer.bias * 2.0**-layer.fraction_bits * first
    weight = path.weight * 2.0**path.exponent
    if path.is_identity:
        if layer.neuron is not None or len(set(weight)) > 1 or bias.any():
            scale = np.broadcast_to(weight.reshape(-1, 1, 1), layer.shape).copy()
            yield "scale", nir.Scale(scale=scale)
        return
    if path.kernel == shape[1:] and path.padding == (0, 0):
        if shape[1:] != (1, 1) or path.source == INPUT:
            yield (
                "flatten",
                nir.Flatten(input_type={"input": np.array(shape)}, start_dim=0, end_dim=-1),
            )
        yield "affine", nir.Affine(weight=weight.reshape(len(weight), -1), bias=bias)
        return
    yield (
        "conv",
        nir.Conv2d(
            input_shape=(shape[1], shape[2]),
            weight=weight,
            stride=path.stride,
            padding=path.padding,
            dilation=(1, 1),
            groups=1,
            bias=bias,
        ),
    )


def _neuron(layer: Layer) -> nir.NIRNode:
    neuron = layer.neuron
    assert neuron is not None
    shape = layer.shape if layer.shape[1:] != (1, 1) else layer.shape[:1]
    theta = (neuron.theta - 0.5 * neuron.to_zero) * 2.0**-layer.fraction_bits
    threshold = np.broadcast_to(theta.reshape(-1, *[1] * (len(shape) - 1)), shape).copy()
    leak = 1.0 - neuron.decay / 2**neuron.decay_bits
    if leak == 0.0:
        return nir.IF(r=np.ones(shape), v_threshold=threshold, v_reset=np.zeros(shape))
    return nir.LIF(
        tau=np.full(shape, 1 / leak),
        r=np.full(shape, 1 / leak),
        v_leak=np.zeros(shape),
        v_threshold=threshold,
        v_reset=np.zeros(shape),
    )
