"""From an nn.Module of supported layers to its meaning: one walk over the torch.fx graph.

This file has the walk; :mod:`train.graph.rules` has the rule of each layer. Everything without an
integer form becomes a `Violation`. All violations are collected, so that a user can fix all of them
at once.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import FrameSummary, extract_tb
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.fx.proxy import TraceError

from lbq_hw.network import INPUT
from lbq_hw.train.data import InputSpec
from lbq_hw.train.graph import (
    Analysis,
    GraphError,
    Levels,
    RefusalError,
    Value,
    Violation,
    joins,
    modes,
)
from lbq_hw.train.graph.modes import evaluating
from lbq_hw.train.graph.plain import LAYERS, check_forward, hooks, plain
from lbq_hw.train.graph.rules import Rules
from lbq_hw.train.layers import MergeTime, Repeat, Scale, TimeMean
from lbq_hw.train.neurons import Neuron

_OURS = (Neuron, Repeat, MergeTime, TimeMean, Scale)


@dataclass(frozen=True)
class Given:
    """A module as its user gave it, and its outputs for an input of the traced module."""

    module: nn.Module
    run: Callable[[Tensor], Tensor]


class Traced(fx.GraphModule):
    """A module traced down to the layers of an integer network, from torch or from this project.

    Members: `given`, the module that was traced, None if it was a graph already; `refused`, the
    layers that could not be read; `notes` for the user.
    """

    given: Given | None = None
    refused: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        root: nn.Module,
        graph: fx.Graph,
        *,
        given: Given | None,
        refused: Sequence[Violation] = (),
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(root, graph)
        self.refused, self.notes = tuple(refused), tuple(notes)
        self.given = given

    def replace(self, path: str, module: nn.Module) -> None:
        """Put a module in the place of another."""
        parent, _, name = path.rpartition(".")
        setattr(self.get_submodule(parent), name, module)


class Tracer(fx.Tracer):
    """Neurons, time layers and torch's layers stay whole, and so do subclasses of `LAYERS`."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:  # noqa: ARG002
        if isinstance(m, (*_OURS, *LAYERS)):
            return True
        torchs = type(m).forward.__module__.startswith("torch.nn.")
        return torchs and not isinstance(m, nn.Sequential)


def trace(model: nn.Module, *, training: bool = False) -> Traced:
    """Trace a model down to torch.nn layers, neurons and time layers, in evaluation mode.

    A forward that differs in training mode gives a note, or with `training` a violation, since the
    traced module will then be trained. Raises `GraphError` if the forward depends on the values of
    tensors.
    """
    if isinstance(model, Traced):
        return model
    refused = [*hooks(model)]
    if isinstance(model, fx.GraphModule):
        root = Traced(model, copy.deepcopy(model.graph), given=None)
        root.refused = (*refused, *_replace_layers(root, refused, training=training))
        return root
    name = type(model).__name__
    if "forward" in vars(model):
        refused.append(
            Violation(
                path=name,
                reason="its forward was replaced, and is not the forward of its class",
                mend="put it into a class",
                trainable=False,
            )
        )
    graph = graph_of(model, Tracer(), training=False)
    reason = differs(model, Tracer, graph)
    notes = []
    if reason and training:
        mend = "write one forward for both, with layers that know their mode (nn.Dropout)"
        refused.append(Violation(path=name, reason=reason, mend=mend, trainable=False))
    elif reason:
        notes.append(f"{name}: {reason}; the network does what the model does in evaluation")
    elif training:  # functions with an argument for the mode differ
        graph = graph_of(model, Tracer(), training=True)
    root = Traced(model, graph, given=Given(model, _evaluated(model)), notes=notes)
    root.refused = (*refused, *_replace_layers(root, refused, training=training))
    return root


def _evaluated(model: nn.Module) -> Callable[[Tensor], Tensor]:
    def run(x: Tensor) -> Tensor:
        with evaluating(model):
            return model(x)

    return run


def differs(model: nn.Module, tracer: type[fx.Tracer], evaluation: fx.Graph) -> str:
    """How a forward in training differs from the graph `evaluation`; empty if it does not."""
    try:
        other = modes.difference(graph_of(model, tracer(), training=True), evaluation)
    except GraphError:
        other = "it depends on values in training"
    return f"its forward differs between training and evaluation: {other}" if other else ""


def _replace_layers(
    root: Traced, refused: Sequence[Violation], *, training: bool
) -> Iterator[Violation]:
    """Replace subclasses by torch's layers; yields those without a torch layer, except the ones
    that were refused before.
    """
    done = {violation.path for violation in refused}
    for node in root.graph.nodes:
        path = str(node.target)
        if node.op != "call_module" or path in done:
            continue
        done.add(path)
        module = root.get_submodule(path)
        try:
            if isinstance(module, LAYERS):
                root.replace(path, plain(module, training=training))
            elif isinstance(module, _OURS):
                check_forward(module)
        except RefusalError as refusal:
            yield Violation(
                path=path, reason=refusal.reason, mend=refusal.mend, trainable=not training
            )


def graph_of(model: nn.Module, tracer: fx.Tracer, *, training: bool) -> fx.Graph:
    """The graph of a forward in a mode; `GraphError` if the forward depends on values."""
    try:
        with modes.mode(model, training=training):
            return tracer.trace(model)
    except (TraceError, TypeError) as error:
        frames = [frame for frame in extract_tb(error.__traceback__) if not _foreign(frame)]
        place = "forward"
        if frames:
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
    """Whether a line of code belongs to torch or to this file, and not to the model."""
    torch_folder = str(Path(torch.__file__).parent)
    return frame.filename == __file__ or frame.filename.startswith(torch_folder)


def analyze(model: nn.Module, spec: InputSpec) -> Analysis:
    """Read the meaning of every node. Violations are collected, never raised, here."""
    return _Reader(model if isinstance(model, fx.GraphModule) else trace(model), spec).read()


_FLATTEN: set[Any] = {
    *(torch.flatten, "flatten", "view", "reshape", torch.reshape),
    *("squeeze", torch.squeeze, "unsqueeze", torch.unsqueeze),
}
_ADD = {operator.add, operator.iadd, torch.add, "add", "add_"}
_AVERAGE: set[Any] = {
    *(F.avg_pool1d, F.avg_pool2d, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d),
    *(torch.mean, "mean"),
}
_MAXIMUM: set[Any] = {
    *(F.max_pool1d, F.max_pool2d, F.adaptive_max_pool1d, F.adaptive_max_pool2d),
    *(torch.amax, "amax"),
}
_DROPOUT = {F.dropout, F.dropout2d}
_MAX_POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d)
_AVG_POOLS = (nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d)
_PADS = (nn.ConstantPad1d, nn.ConstantPad2d)  # nn.ZeroPad1d and nn.ZeroPad2d are subclasses
_PASS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Identity, MergeTime, Scale)
_SUPPORTED = (
    *(Neuron, nn.Conv1d, nn.Conv2d, nn.Linear, nn.BatchNorm1d, nn.BatchNorm2d, nn.Flatten),
    *(Repeat, TimeMean, *_MAX_POOLS, *_AVG_POOLS, *_PADS, *_PASS),
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
_JOIN = (
    "join channels (dim=1), and let convolutions, linear layers, norms, neurons and pools read them"
)
_JOINS = ("cat", "concat", "concatenate", "stack")
_NEURON = "put LBQ() here, or convert() a trained ANN of ReLUs"
_ACTIVATIONS = (
    *("relu", "relu_", "relu6", "leaky_relu", "prelu", "elu", "selu", "gelu", "silu", "mish"),
    *("sigmoid", "tanh", "hardtanh", "hardsigmoid", "hardswish", "softplus"),
)
_NO_NEURONS = (nn.MultiheadAttention, nn.Softmax, nn.Softmax2d, nn.Softmin, nn.LogSoftmax)
"""Layers of torch's module of activations that no neuron can stand in for."""
_MENDS = {
    **dict.fromkeys(_JOINS, _JOIN),
    **dict.fromkeys(("repeat", "expand", "tile", "repeat_interleave"), _REPEAT),
    **dict.fromkeys(_ACTIVATIONS, _NEURON),
    "sum": "to read out, use train.layers.TimeMean; to pool, nn.AvgPool2d",
    "batch_norm": "use the layer nn.BatchNorm2d",
    "conv1d": "use the layer nn.Conv1d",
    "conv2d": "use the layer nn.Conv2d",
    "linear": "use the layer nn.Linear",
}


def _is_activation(module: nn.Module) -> bool:
    known = type(module).__module__ == nn.ReLU.__module__
    return known and not isinstance(module, _NO_NEURONS)


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
        refused = self.root.refused if isinstance(self.root, Traced) else ()
        self.found.violations += refused
        self.refused = {violation.path for violation in refused}
        known = len(refused)
        self._find_shapes()
        if len(self.found.violations) > known:
            return self.found  # without shapes nothing more can be said
        if isinstance(self.root, Traced) and not refused and joins.sink(self.root):
            self._find_shapes()
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
                runs=False,
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
        if path in self.refused:
            return None  # when it was traced
        if not isinstance(module, _SUPPORTED):
            mend = _NEURON if _is_activation(module) else "use the layers of docs/layers.md"
            self.found.refuse(path, f"{type(module).__name__} has no integer form", mend)
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
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
            return self.rules.synapse(node, path, module, value)
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
            return self.rules.norm(path, module, value)
        if isinstance(module, _MAX_POOLS):
            return self.rules.max_pool(node, path, value, module)
        if isinstance(module, _AVG_POOLS):
            return self.rules.average(node, path, value, module)
        if isinstance(module, _PADS):
            return self.rules.zero_pad(node, path, value, module)
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
        if target in _DROPOUT and node.kwargs.get("training") is False:
            return operands[0]
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
        joined = joins.channels_joined(node)
        if joined is not None and self.refused:
            return None  # layers that are refused cannot be split
        if joined is not None:
            sizes = (part.meta["shape"][1] for part in joined)
            values = (self.found.values.get(part) for part in joined)
            return self.rules.join(path, list(zip(values, sizes, strict=True)), _JOIN)
        value = operands[0] if operands else None
        if value is None:
            return None
        if target in _FLATTEN:
            return self.rules.flatten(node, path, value)
        if target in _AVERAGE:
            return self.rules.average(node, path, value, None)
        if target in _MAXIMUM:
            return self.rules.max_pool(node, path, value, None)
        if target is F.pad:
            return self.rules.zero_pad(node, path, value, None)
        mend = _MENDS.get(name, "express it with supported layers")
        if name in _JOINS and len(node.all_input_nodes) == 1:
            mend = _REPEAT
        self.found.refuse(path, f"the function {name} has no integer form", mend)
        return None
