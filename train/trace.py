"""From any nn.Module of supported layers to its meaning: one walk over the torch.fx graph.

Whatever the integer network has no form for becomes a `Violation`; all of them are collected,
because a user would rather mend five things at once than one at a time.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from lbq_hw.network import INPUT, Shape
from train import windows
from train.data import InputSpec
from train.graph import (
    Analysis,
    Identity,
    Levels,
    Norm,
    Population,
    Readout,
    Sum,
    Synapse,
    Value,
    Violation,
    terms,
)
from train.layers import MergeTime, Repeat, Scale, TimeMean
from train.neurons import Neuron


class _Tracer(fx.Tracer):
    """Neurons and time layers stay whole; everything else opens down to torch.nn."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if isinstance(m, Neuron | Repeat | MergeTime | TimeMean | Scale):
            return True
        return super().is_leaf_module(m, module_qualified_name)


def trace(model: nn.Module) -> fx.GraphModule:
    """Trace a model down to torch.nn layers, neurons and time layers."""
    return fx.GraphModule(model, _Tracer().trace(model))


def analyze(model: nn.Module, spec: InputSpec) -> Analysis:
    """Read the meaning of every node. Violations are collected, never raised, here."""
    graph_module = model if isinstance(model, fx.GraphModule) else trace(model)
    return _Reader(graph_module, spec).read()


_FLATTEN = {torch.flatten, "flatten", "view", "reshape", torch.reshape}
_ADD = {operator.add, operator.iadd, torch.add, "add", "add_"}
_AVERAGE = {F.avg_pool2d, F.adaptive_avg_pool2d, torch.mean, "mean"}
_PASS = (nn.Dropout, nn.Dropout2d, nn.Identity, MergeTime, Scale)
_SUPPORTED = (
    *(Neuron, nn.Conv2d, nn.Linear, nn.BatchNorm1d, nn.BatchNorm2d, nn.Flatten, Repeat, TimeMean),
    *(nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, *_PASS),
)
_SHAPE_QUERIES = {
    "size",
    "dim",
    "numel",
    getattr,
    operator.getitem,
    operator.floordiv,
    operator.mul,
}


class _ShapeRecorder(fx.Interpreter):
    """Runs the graph once and leaves each tensor's shape on its node."""

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, Tensor):
            n.meta["shape"] = tuple(result.shape)
        return result


class _Reader:
    def __init__(self, graph_module: fx.GraphModule, spec: InputSpec) -> None:
        self.root = graph_module
        self.spec = spec
        self.found = Analysis(graph=graph_module.graph, values={})
        self.seen: set[str] = set()

    def read(self) -> Analysis:
        self._find_shapes()
        if self.found.violations:
            return self.found  # without shapes nothing more can be said
        for node in self.root.graph.nodes:
            self.found.values[node] = self._value(node)
        self._check_max_pools()
        return self.found

    def _find_shapes(self) -> None:
        timed = [m for m in self.root.modules() if isinstance(m, Neuron | Repeat | TimeMean)]
        steps = {m.timesteps for m in timed} or {1}
        self.found.timesteps = max(steps)
        if len(steps) > 1:
            self._violation(
                "model",
                f"its layers disagree on the number of timesteps: {sorted(steps)}",
                "build all of them with the same timesteps",
                trainable=False,
            )
            return
        like = next(self.root.parameters(), torch.zeros(()))
        frames = () if self.spec.static else (self.found.timesteps,)
        example = like.new_zeros(*frames, 1, *self.spec.shape)
        training = self.root.training
        self.root.eval()
        try:
            with torch.no_grad():
                _ShapeRecorder(self.root).run(example)
        except (RuntimeError, ValueError) as error:
            self._violation(
                "model",
                f"fails on an input of shape {tuple(example.shape)} ({str(error).splitlines()[0]})",
                "check the input's shape and the layers that follow it",
                trainable=False,
            )
        finally:
            self.root.train(training)

    def _violation(self, path: str, reason: str, mend: str, *, trainable: bool = True) -> None:
        self.found.violations.append(
            Violation(path=path, reason=reason, mend=mend, trainable=trainable)
        )

    def _shape(self, node: fx.Node) -> tuple[int, ...]:
        return node.meta.get("shape", ())

    def _image_shape(self, node: fx.Node) -> Shape:
        shape = self._shape(node)[1:]
        return (shape[0], 1, 1) if len(shape) == 1 else (shape[0], shape[1], shape[2])

    def _value(self, node: fx.Node) -> Value:
        if node.op == "placeholder":
            return Levels(source=INPUT, neuron=None, shape=self.spec.shape)
        if node.op == "output":
            return self._output(node)
        operands = [self.found.values.get(arg) for arg in node.all_input_nodes]
        if node.op == "call_module":
            return self._module(node, self.root.get_submodule(str(node.target)), operands)
        if node.op in ("call_function", "call_method"):
            return self._function(node, operands)
        self._violation(node.name, "a bare tensor enters the graph", "use a layer's own bias")
        return None

    def _module(self, node: fx.Node, module: nn.Module, operands: list[Value]) -> Value:
        path = str(node.target)
        if not isinstance(module, _SUPPORTED):
            self._violation(
                path,
                f"{type(module).__name__} has no integer form",
                "use Conv2d, Linear, BatchNorm, MaxPool2d, AvgPool2d, Flatten and an LBQ neuron",
            )
            return None
        if list(module.parameters(recurse=False)):
            if path in self.seen:
                self._violation(
                    path,
                    "is called more than once",
                    "give each call its own layer",
                    trainable=False,  # a layer absorbs the gamma of one source
                )
                return None
            self.seen.add(path)
        value = operands[0] if operands else None
        if value is None:
            return None  # its cause has been reported
        if isinstance(module, Neuron):
            return self._neuron(node, path, module, value)
        if isinstance(module, nn.Conv2d | nn.Linear):
            return self._synapse(node, path, module, value)
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
            return self._norm(path, module, value)
        if isinstance(module, nn.MaxPool2d):
            return self._max_pool(path, module, value)
        if isinstance(module, nn.AvgPool2d | nn.AdaptiveAvgPool2d):
            return self._average(node, path, value, module)
        if isinstance(module, nn.Flatten):
            return self._flatten(node, path, value)
        if isinstance(module, Repeat):
            return self._repeat(path, value)
        if isinstance(module, TimeMean):
            return self._time_mean(path, value)
        return value

    def _function(self, node: fx.Node, operands: list[Value]) -> Value:
        target: Any = node.target
        if target in _SHAPE_QUERIES and "shape" not in node.meta:
            return None  # a size, not a tensor: it carries nothing to deploy
        name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
        path = f"{name} ({node.name})"
        if "training" in node.kwargs:
            self._violation(
                path,
                f"the function {name} stays in the mode it was traced in, training or not",
                "use the layer of torch.nn, such as nn.Dropout",
                trainable=False,
            )
            return None
        if target in _ADD:
            return self._sum(node, path, operands)
        value = operands[0] if operands else None
        if value is None:
            return None
        if target in _FLATTEN:
            return self._flatten(node, path, value)
        if target in _AVERAGE:
            return self._average(node, path, value, None)
        if target is F.max_pool2d or name == "boolean_dispatch":
            return self._max_pool(path, windows.max_pool(node), value)
        self._violation(
            path, f"the function {name} has no integer form", "express it with supported layers"
        )
        return None

    def _neuron(self, node: fx.Node, path: str, module: Neuron, value: Value) -> Value:
        if isinstance(value, Readout):
            self._violation(path, "comes after the readout", "end the model with TimeMean")
            return None
        current = Identity(levels=value) if isinstance(value, Levels) else value
        assert current is not None
        shape = self._image_shape(node)
        self.found.populations.append(
            Population(name=path, neuron=module, current=current, shape=shape)
        )
        return Levels(source=path, neuron=module, shape=shape)

    def _synapse(
        self, node: fx.Node, path: str, module: nn.Conv2d | nn.Linear, value: Value
    ) -> Value:
        if not isinstance(value, Levels):
            self._violation(
                path, "weights act on a current, not on burst levels", "put a neuron in front"
            )
            return None
        source = node.all_input_nodes[0]
        if isinstance(module, nn.Conv2d):
            for name, wanted in (("groups", 1), ("dilation", (1, 1)), ("padding_mode", "zeros")):
                if getattr(module, name) != wanted:
                    self._violation(
                        path, f"{name} is {getattr(module, name)!r}", f"use {name}={wanted!r}"
                    )
            if isinstance(module.padding, str):
                self._violation(path, f"padding is {module.padding!r}", "give padding in pixels")
        elif len(self._shape(source)) != 2:
            self._violation(path, "a linear layer acts on images", "flatten them first")
            return None
        return Synapse(levels=value, path=path, module=module)

    def _norm(self, path: str, module: nn.BatchNorm2d | nn.BatchNorm1d, value: Value) -> Value:
        if isinstance(value, Readout):
            self._violation(path, "normalizes the logits", "drop it or fold it into the linear")
            return None
        if not module.track_running_stats:
            self._violation(
                path, "has no running statistics", "build it with track_running_stats=True"
            )
            return None
        current = Identity(levels=value) if isinstance(value, Levels) else value
        assert current is not None
        return Norm(current=current, module=module)

    def _max_pool(self, path: str, pool: nn.MaxPool2d | None, value: Value) -> Value:
        if (
            pool is None
            or pool.ceil_mode
            or pool.return_indices
            or windows.pair(pool.dilation) != (1, 1)
        ):
            self._violation(
                path,
                "this form of max-pool has no integer form",
                "use kernel, stride and padding as constants, no dilation, no ceil_mode",
            )
            return None
        if not isinstance(value, Levels) or value.neuron is None:
            self._violation(path, "max-pool acts on a current", "move it behind the neuron")
            return None
        if value.max_pool or value.sum_pool:
            self._violation(path, "a pool follows a pool", "merge the two windows into one")
            return None
        window = windows.of(pool)
        return replace(value, max_pool=window, shape=window.output_shape(value.shape))

    def _average(self, node: fx.Node, path: str, value: Value, pool: nn.Module | None) -> Value:
        if not isinstance(value, Levels):
            self._violation(path, "average pool acts on a current", "move it behind the neuron")
            return None
        if value.sum_pool:
            self._violation(path, "a pool follows a pool", "merge the two windows into one")
            return None
        before, after = self._shape(node.all_input_nodes[0]), self._shape(node)
        window = windows.average(node, before, after, pool)
        if window is None:
            self._violation(
                path,
                "this form of average has no integer form",
                "average whole windows of height and width, count_include_pad=True, no ceil_mode",
            )
            return None
        return replace(value, sum_pool=window, shape=window.output_shape(value.shape))

    def _flatten(self, node: fx.Node, path: str, value: Value) -> Value:
        before, after = self._shape(node.all_input_nodes[0]), self._shape(node)
        flat = len(after) == 2 and after[0] == before[0]
        if after != before and not (flat and isinstance(value, Levels)):
            self._violation(
                path,
                f"reshapes {before} to {after}",
                "flatten levels from dimension 1, and use TimeMean for the readout",
            )
            return None
        return value

    def _repeat(self, path: str, value: Value) -> Value:
        origin = [value] if isinstance(value, Levels) else []
        if isinstance(value, Synapse | Identity | Norm | Sum):
            origin = [term.origin.levels for term in terms(value)]
        if not self.spec.static or any(levels.neuron is not None for levels in origin):
            self._violation(
                path, "repeats what already has timesteps", "repeat a static input's current only"
            )
            return None
        return value

    def _time_mean(self, path: str, value: Value) -> Value:
        if not isinstance(value, Synapse | Norm | Sum):
            self._violation(
                path, "the readout does not average a current", "put it behind the last linear"
            )
            return None
        return Readout(current=value)

    def _sum(self, node: fx.Node, path: str, operands: list[Value]) -> Value:
        if len(node.args) != 2 or len(operands) != 2 or node.kwargs:
            self._violation(
                path, "adds something that is not a current", "add two activations of one shape"
            )
            return None
        if any(operand is None or isinstance(operand, Readout) for operand in operands):
            return None
        shapes = {self._shape(arg) for arg in node.all_input_nodes}
        if len(shapes) != 1:
            self._violation(path, f"adds unlike shapes {sorted(shapes)}", "project one of them")
            return None
        currents = tuple(
            Identity(levels=operand) if isinstance(operand, Levels) else operand
            for operand in operands
        )
        return Sum(currents=currents)  # type: ignore[arg-type]

    def _output(self, node: fx.Node) -> Value:
        value = self.found.values.get(node.args[0]) if isinstance(node.args[0], fx.Node) else None  # type: ignore[arg-type]
        if isinstance(value, Synapse | Norm | Sum) and self.found.timesteps == 1:
            value = Readout(current=value)
        if isinstance(value, Readout):
            source = node.all_input_nodes[0]
            self.found.populations.append(
                Population(
                    name="logits",
                    neuron=None,
                    current=value.current,
                    shape=self._image_shape(source),
                )
            )
        elif not self.found.violations:
            self._violation(
                "output",
                "the model does not end in logits averaged over time",
                "end it with Linear and TimeMean",
            )
        return value

    def _check_max_pools(self) -> None:
        for population in self.found.populations:
            pools = {levels.max_pool for levels in self.found.consumed(population.name)}
            if len(pools) > 1:
                self._violation(
                    population.name,
                    "its levels are used both with and without a max-pool, or with two",
                    "let every consumer read the same pooled levels",
                )
