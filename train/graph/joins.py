"""Removes concatenations from a graph: a layer that reads a join reads each part instead.

An integer network does not copy tensors side by side. A layer that reads several tensors has a path
from each, and the sum of these paths equals the layer's result on the concatenation:

    conv(cat(a, b))     conv.0(a) + conv.1(b), with the weights for a and the weights for b
    norm(cat(a, b))     cat(norm.0(a), norm.1(b))
    neuron(cat(a, b))   cat(neuron.0(a), neuron.1(b)), which share their step and other parameters
    pool(cat(a, b))     cat(pool(a), pool(b)), and likewise every module that acts on each channel
                        alone

So each concatenation sinks through the graph. It remains only at the end, where the parts are
outputs that lie side by side (`Rules.join`). The name of a part is the name of its layer and a
number. Nothing else changes: the parts compute and learn the same as the whole layer.
"""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from lbq_hw.train.layers import Repeat, TimeMean
from lbq_hw.train.neurons import Neuron

CAT = {torch.cat, torch.concat, torch.concatenate}
_EACH = (
    *(nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d, nn.Flatten, nn.Identity, Repeat),
    *(nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d),
    *(nn.ZeroPad1d, nn.ZeroPad2d, nn.ConstantPad1d, nn.ConstantPad2d, TimeMean),
    *(nn.Dropout, nn.Dropout1d, nn.Dropout2d),
)
_EACH_FUNCTIONS: set[Any] = {
    *(F.max_pool1d, F.max_pool2d, F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.pad),
    *(F.avg_pool1d, F.avg_pool2d, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d),
    *(torch.mean, "mean", torch.amax, "amax", F.dropout, F.dropout2d),
    *(torch.flatten, "flatten", "squeeze", torch.squeeze, "unsqueeze", torch.unsqueeze),
}
_ADD: set[Any] = {operator.add, operator.iadd, torch.add, "add", "add_"}
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
_SYNAPSES = (nn.Conv1d, nn.Conv2d, nn.Linear)

Part = tuple[fx.Node, int]
"""A node, and the length of its second axis."""


def channels_joined(node: fx.Node) -> list[fx.Node] | None:
    """The operands of a concatenation of channels; None for any other node."""
    if node.op != "call_function" or node.target not in CAT:
        return None
    given: dict[str, Any] = dict(zip(("tensors", "dim"), node.args, strict=False)) | node.kwargs
    operands, axis = given["tensors"], given.get("dim", given.get("axis", 0))
    sizes = [operand.meta.get("shape", ()) for operand in operands]
    if any(len(size) < 2 for size in sizes) or axis not in (1, 1 - len(sizes[0])):
        return None
    return list(operands)


def sink(root: Any) -> bool:
    """Remove concatenations from a traced module whose nodes have shapes, in place; True if there
    were any. A concatenation that cannot sink further stays.
    """
    return _Sinking(root).run()


class _Sinking:
    def __init__(self, root: Any) -> None:
        self.root = root
        self.graph: fx.Graph = root.graph
        self.parts: dict[fx.Node, list[Part]] = {}
        self.replaced: list[fx.Node] = []

    def run(self) -> bool:
        for node in list(self.graph.nodes):
            joined = channels_joined(node)
            if joined is not None:
                self.parts[node] = [part for operand in joined for part in self._of(operand)]
            elif any(operand in self.parts for operand in node.all_input_nodes):
                self._consume(node)
        if not self.replaced:
            return False
        for node in reversed(list(self.graph.nodes)):
            if node in self.replaced and node.users:
                self._rejoin(node)
            if (node in self.replaced or node in self.parts) and not node.users:
                self.graph.erase_node(node)
        self.graph.lint()
        self.root.recompile()
        return True

    def _of(self, node: fx.Node) -> list[Part]:
        return self.parts.get(node) or [(node, node.meta["shape"][1])]

    def _rejoin(self, node: fx.Node) -> None:
        """Join the parts again for a node that cannot take them, such as the output."""
        with self.graph.inserting_before(node):
            parts = [part for part, _ in self.parts[node]]
            node.replace_all_uses_with(self.graph.call_function(torch.cat, (parts, 1)))

    def _consume(self, node: fx.Node) -> None:
        """Let a node act on the parts of its operands, if it can."""
        source = node.all_input_nodes[0]
        if node.op == "call_module":
            module = self.root.get_submodule(str(node.target))
            if isinstance(module, _EACH):
                self._each(node, source)
            elif isinstance(module, (Neuron, *_NORMS, *_SYNAPSES)) and self._once(node):
                self._split(node, source, module)
        elif node.target in _ADD:
            self._add(node)
        elif node.target in _EACH_FUNCTIONS and len(node.all_input_nodes) == 1:
            self._each(node, source)
        elif node.target in ("view", "reshape", torch.reshape) and len(node.meta["shape"]) == 2:
            self._flatten(node, source)
        elif node.target == "size" and node.args[1:] == (0,):
            node.replace_input_with(source, self._of(source)[0][0])

    def _once(self, node: fx.Node) -> bool:
        return sum(other.target == node.target for other in self.graph.nodes) == 1

    def _each(self, node: fx.Node, source: fx.Node) -> None:
        made, after, before = [], node.meta["shape"][1], source.meta["shape"][1]
        own = {operand: operand for operand in node.all_input_nodes}
        for part, size in self.parts[source]:
            with self.graph.inserting_before(node):
                same = self.graph.node_copy(node, {**own, source: part}.__getitem__)
            made.append((same, size * after // before))
        self._done(node, made)

    def _flatten(self, node: fx.Node, source: fx.Node) -> None:
        made, ratio = [], node.meta["shape"][1] // source.meta["shape"][1]
        for part, size in self.parts[source]:
            with self.graph.inserting_before(node):
                made.append((self.graph.call_function(torch.flatten, (part, 1)), size * ratio))
        self._done(node, made)

    def _add(self, node: fx.Node) -> None:
        operands = [self._of(operand) for operand in node.args if isinstance(operand, fx.Node)]
        sizes = [[size for _, size in operand] for operand in operands]
        if len(operands) != 2 or sizes[0] != sizes[1]:
            return
        made = []
        for (first, size), (second, _) in zip(*operands, strict=True):
            with self.graph.inserting_before(node):
                made.append((self.graph.call_function(operator.add, (first, second)), size))
        self._done(node, made)

    def _split(self, node: fx.Node, source: fx.Node, module: nn.Module) -> None:
        sizes = [size for _, size in self.parts[source]]
        modules = _split_module(module, sizes)
        if modules is None:
            return
        path, made = str(node.target), []
        self.root.replace(path, nn.ModuleList(modules))
        for number, (part, size) in enumerate(self.parts[source]):
            with self.graph.inserting_before(node):
                made.append((self.graph.call_module(f"{path}.{number}", (part,)), size))
        if isinstance(module, (Neuron, *_NORMS)) or getattr(module, "groups", 1) > 1:
            after, before = node.meta["shape"][1], source.meta["shape"][1]
            self._done(node, [(part, size * after // before) for part, size in made])
            return
        total = made[0][0]
        for part, _ in made[1:]:
            with self.graph.inserting_before(node):
                total = self.graph.call_function(operator.add, (total, part))
        total.meta = dict(node.meta)
        node.replace_all_uses_with(total)
        self.replaced.append(node)

    def _done(self, node: fx.Node, parts: list[Part]) -> None:
        shape = node.meta["shape"]
        for part, size in parts:
            part.meta["shape"] = (shape[0], size, *shape[2:])
        self.parts[node] = parts
        self.replaced.append(node)


def _split_module(module: nn.Module, sizes: list[int]) -> list[nn.Module] | None:
    """One module per part, for `sizes` channels (or features of a linear layer); None if the module
    cannot be split.
    """
    groups = getattr(module, "groups", 1)
    total = sum(sizes)
    if groups > 1 and any(size % (total // groups) for size in sizes):
        return None  # a group that reads two parts
    found, first = list[nn.Module](), 0
    for number, size in enumerate(sizes):
        span = slice(first, first + size)
        first += size
        if isinstance(module, Neuron):
            found.append(_neuron(module, span))
        elif isinstance(module, _NORMS):
            found.append(_norm(module, span))
        elif groups > 1:
            found.append(_grouped(module, span, total))
        else:
            found.append(_synapse(module, span, bias=number == 0))
    return found


def _twin(module: Any) -> Any:
    """A copy with the same tensors, whose tensors can be replaced one by one."""
    twin = copy.copy(module)
    twin._parameters = dict(module._parameters)
    twin._buffers = dict(module._buffers)
    return twin


def _cut(twin: Any, name: str, span: slice | tuple[slice, ...]) -> None:
    tensor = getattr(twin, name)
    if tensor is None:
        return
    part = tensor.detach()[span].clone()
    if isinstance(tensor, nn.Parameter):
        twin._parameters[name] = nn.Parameter(part, requires_grad=tensor.requires_grad)
    else:
        twin._buffers[name] = part


def _neuron(module: Neuron, span: slice) -> Neuron:
    twin = _twin(module)
    for name, tensor in module._buffers.items():
        if isinstance(tensor, Tensor) and tensor.dim():
            _cut(twin, name, span)  # a threshold per channel
    return twin


def _norm(module: Any, span: slice) -> nn.Module:
    twin = _twin(module)
    twin.num_features = span.stop - span.start
    for name in ("weight", "bias", "running_mean", "running_var"):
        _cut(twin, name, span)
    if module.num_batches_tracked is not None:
        twin._buffers["num_batches_tracked"] = module.num_batches_tracked.clone()
    return twin


def _synapse(module: Any, span: slice, *, bias: bool) -> nn.Module:
    twin = _twin(module)
    inputs = "in_features" if isinstance(module, nn.Linear) else "in_channels"
    setattr(twin, inputs, span.stop - span.start)
    _cut(twin, "weight", (slice(None), span))
    if not bias:
        twin._parameters["bias"] = None
    return twin


def _grouped(module: Any, span: slice, total: int) -> nn.Module:
    twin = _twin(module)
    outputs = slice(*(place * module.out_channels // total for place in (span.start, span.stop)))
    twin.in_channels, twin.out_channels = span.stop - span.start, outputs.stop - outputs.start
    twin.groups = module.groups * twin.in_channels // total
    _cut(twin, "weight", outputs)
    _cut(twin, "bias", outputs)
    return twin
