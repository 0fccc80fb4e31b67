"""From any nn.Module of supported layers to its meaning: one walk over the torch.fx graph.

Here is the walk; what a layer makes of its input, :mod:`train.graph.rules` says. Whatever the
integer network has no form for becomes a `Violation`; all of them are collected, because a user
would rather mend five things at once than one at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import FrameSummary, extract_tb
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.fx.proxy import TraceError

from lbq_hw.network import INPUT
from train.data import InputSpec
from train.graph import Analysis, GraphError, Levels, Value, Violation, windows
from train.graph.rules import Rules
from train.layers import MergeTime, Repeat, Scale, TimeMean
from train.neurons import Neuron


class _Tracer(fx.Tracer):
    """Neurons and time layers stay whole; everything else opens down to torch.nn."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if isinstance(m, Neuron | Repeat | MergeTime | TimeMean | Scale):
            return True
        return super().is_leaf_module(m, module_qualified_name)


def trace(model: nn.Module) -> fx.GraphModule:
    """Trace a model down to torch.nn layers, neurons and time layers.

    Raises `GraphError` where its forward depends on the values that go through it.
    """
    try:
        return fx.GraphModule(model, _Tracer().trace(model))
    except (TraceError, TypeError) as error:
        frames = [frame for frame in extract_tb(error.__traceback__) if not _foreign(frame)]
        if not frames:
            raise
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
        raise GraphError(
            [
                Violation(
                    path=f"{type(model).__name__} ({place})",
                    reason=f"its forward depends on the values of a tensor ({error})",
                    mend="decide by sizes and settings that are known beforehand",
                    trainable=False,
                )
            ]
        ) from None


def _foreign(frame: FrameSummary) -> bool:
    """Whether a line is of torch or of this file, not of the model."""
    torch_folder = str(Path(torch.__file__).parent)
    return frame.filename == __file__ or frame.filename.startswith(torch_folder)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """A module in evaluation mode, and each part of it back in its own mode afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


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


_REPEAT = "to repeat a static input over time, use train.layers.Repeat"
_MENDS = {
    **dict.fromkeys(("repeat", "expand", "cat", "stack", "tile", "repeat_interleave"), _REPEAT),
    **dict.fromkeys(("relu", "relu_", "sigmoid", "tanh"), "use a neuron of train.neurons"),
    "sum": "to read out, use train.layers.TimeMean; to pool, nn.AvgPool2d",
    "batch_norm": "use the layer nn.BatchNorm2d",
    "conv2d": "use the layer nn.Conv2d",
    "linear": "use the layer nn.Linear",
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
        self.rules = Rules(self.found, spec)
        self.seen: set[str] = set()

    def read(self) -> Analysis:
        self._find_shapes()
        if self.found.violations:
            return self.found  # without shapes nothing more can be said
        for node in self.root.graph.nodes:
            self.found.values[node] = self._value(node)
        self.rules.check_max_pools()
        return self.found

    def _find_shapes(self) -> None:
        timed = [m for m in self.root.modules() if isinstance(m, Neuron | Repeat | TimeMean)]
        steps = {m.timesteps for m in timed} or {1}
        self.found.timesteps = max(steps)
        if len(steps) > 1:
            self.found.refuse(
                "model",
                f"its layers disagree on the number of timesteps: {sorted(steps)}",
                "build all of them with the same timesteps",
                trainable=False,
            )
            return
        like = next(self.root.parameters(), torch.zeros(()))
        frames = () if self.spec.static else (self.found.timesteps,)
        example = like.new_zeros(*frames, 1, *self.spec.shape)
        try:
            with torch.no_grad(), evaluating(self.root):
                _ShapeRecorder(self.root).run(example)
        except (RuntimeError, ValueError) as error:
            self.found.refuse(
                "model",
                f"fails on an input of shape {tuple(example.shape)} ({str(error).splitlines()[0]})",
                "check the input's shape and the layers that follow it",
                trainable=False,
            )

    def _value(self, node: fx.Node) -> Value:
        if node.op == "placeholder":
            return Levels(source=INPUT, neuron=None, shape=self.spec.shape)
        if node.op == "output":
            return self.rules.output(node)
        operands = [self.found.values.get(arg) for arg in node.all_input_nodes]
        if node.op == "call_module":
            return self._module(node, self.root.get_submodule(str(node.target)), operands)
        if node.op in ("call_function", "call_method"):
            return self._function(node, operands)
        self.found.refuse(node.name, "a bare tensor enters the graph", "use a layer's own bias")
        return None

    def _module(self, node: fx.Node, module: nn.Module, operands: list[Value]) -> Value:
        path = str(node.target)
        if not isinstance(module, _SUPPORTED):
            self.found.refuse(
                path,
                f"{type(module).__name__} has no integer form",
                "use Conv2d, Linear, BatchNorm, MaxPool2d, AvgPool2d, Flatten and an LBQ neuron",
            )
            return None
        if isinstance(module, Neuron) or list(module.parameters(recurse=False)):
            if path in self.seen:
                self.found.refuse(
                    path,
                    "is called more than once",
                    "give each call its own layer",
                    trainable=False,  # a layer absorbs one gamma, a neuron emits one tensor
                )
                return None
            self.seen.add(path)
        value = operands[0] if operands else None
        if value is None:
            return None  # its cause has been reported
        if isinstance(module, Neuron):
            return self.rules.neuron(node, path, module, value)
        if isinstance(module, nn.Conv2d | nn.Linear):
            return self.rules.synapse(node, path, module, value)
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
            return self.rules.norm(path, module, value)
        if isinstance(module, nn.MaxPool2d):
            return self.rules.max_pool(path, module, value)
        if isinstance(module, nn.AvgPool2d | nn.AdaptiveAvgPool2d):
            return self.rules.average(node, path, value, module)
        if isinstance(module, nn.Flatten):
            return self.rules.flatten(node, path, value)
        if isinstance(module, Repeat):
            return self.rules.repeat(path, value)
        if isinstance(module, TimeMean):
            return self.rules.time_mean(path, value)
        return value

    def _function(self, node: fx.Node, operands: list[Value]) -> Value:
        target: Any = node.target
        if target in _SHAPE_QUERIES and "shape" not in node.meta:
            return None  # a size, not a tensor: it carries nothing to deploy
        name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
        path = f"{name} ({node.name})"
        if "training" in node.kwargs:
            self.found.refuse(
                path,
                f"the function {name} stays in the mode it was traced in, training or not",
                "use the layer of torch.nn, such as nn.Dropout",
                trainable=False,
            )
            return None
        if target in _ADD:
            return self.rules.sum(node, path, operands)
        value = operands[0] if operands else None
        if value is None:
            return None
        if target in _FLATTEN:
            return self.rules.flatten(node, path, value)
        if target in _AVERAGE:
            return self.rules.average(node, path, value, None)
        if target is F.max_pool2d or name == "boolean_dispatch":
            return self.rules.max_pool(path, windows.max_pool(node), value)
        mend = _MENDS.get(name, "express it with supported layers")
        self.found.refuse(path, f"the function {name} has no integer form", mend)
        return None
