"""A network of another framework in this project's layers: one walk over its torch.fx graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, fx, nn

from lbq_hw.train.frameworks import brevitas, sinabs, snntorch, spikingjelly
from lbq_hw.train.graph import GraphError, RefusalError, Violation
from lbq_hw.train.graph.modes import evaluating
from lbq_hw.train.graph.plain import LAYERS, hooks, plain
from lbq_hw.train.graph.trace import Given, Traced, differs, graph_of
from lbq_hw.train.layers import MergeTime, Repeat, TimeMean

_FRAMEWORKS: tuple[ModuleType, ...] = (brevitas, sinabs, snntorch, spikingjelly)
_FLAT = (nn.Linear, nn.BatchNorm1d, nn.Flatten)
_LINES = (nn.Conv1d, nn.MaxPool1d, nn.AvgPool1d, nn.AdaptiveMaxPool1d, nn.AdaptiveAvgPool1d)
_IMAGES = (
    *(nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Dropout2d),
    *(nn.AdaptiveMaxPool2d, nn.ConstantPad2d),
)


def adopt(model: nn.Module, *, timesteps: int, static: bool) -> Traced:
    """A module with the same spikes as `model` over `timesteps`; its output is the mean over time.

    `model` computes one timestep, its neurons keep their membranes between calls (in snnTorch,
    ``init_hidden=True``), and membranes start from rest. The mean is of the spikes if the last
    layer is a neuron, else of its current. With `static`, one image serves every timestep and the
    module takes ``(B, C, H, W)``; else it takes ``(T, B, C, H, W)``. Parameters are shared with
    `model`, except weights that a layer computes: their present values are copied. A quantized ANN
    of Brevitas is imported with one timestep. GraphError with every place that has no exact form.
    Export compares the network's layers with `model` itself.
    """
    graph = graph_of(model, _Tracer(), training=False)
    other = differs(model, _Tracer, graph)
    note = f"{type(model).__name__}: {other}; the network does what the model does in evaluation"
    given = Given(model, _given(model, timesteps, static=static))
    root = Traced(model, graph, given=given, notes=[note] if other else [])
    violations = [*hooks(model), *_take_up(root, timesteps)]
    if not violations:
        violations += _one_head(root)
    if violations:
        raise GraphError(violations)
    _add_time(root, timesteps, static=static)
    root.recompile()
    return root.eval()  # pyright: ignore[reportReturnType]


def _take_up(root: Traced, timesteps: int) -> Iterator[Violation]:
    """Replace all layers and neurons of a root; yields a violation for each one without an exact
    form.
    """
    seen: set[str] = set()
    refused: set[str] = set()
    for node in list(root.graph.nodes):
        path = str(node.target)
        if node.op != "call_module" or path in refused:
            continue
        module = root.get_submodule(path)
        framework = _framework(module)
        try:
            if path in seen:
                raise RefusalError("is called more than once", "trace one timestep, not a loop")
            if framework is None:
                if isinstance(module, LAYERS):
                    root.replace(path, plain(module))
                continue
            seen.add(path)
            root.replace(path, framework.read(module, _axes(node, root)).build(timesteps))
            _take_spikes(node)
        except RefusalError as refusal:
            refused.add(path)
            yield Violation(path=path, reason=refusal.reason, mend=refusal.mend)


def _framework(module: nn.Module) -> ModuleType | None:
    return next((one for one in _FRAMEWORKS if one.knows(module)), None)


class _Tracer(fx.Tracer):
    """Neurons and layers stay whole, and so do a framework's subclasses of torch's layers."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if _framework(m) is not None or isinstance(m, LAYERS):
            return True
        return super().is_leaf_module(m, module_qualified_name)


def _axes(node: fx.Node, root: nn.Module) -> int:
    """Number of axes of a neuron's membrane besides the batch: 1 after a layer of vectors, 2 after
    a layer of lines, else 3.
    """
    while node.all_input_nodes:
        node = node.all_input_nodes[0]
        if node.op == "call_module":
            module = root.get_submodule(str(node.target))
            if isinstance(module, _FLAT):
                return 1
            if isinstance(module, _LINES):
                return 2
            if isinstance(module, _IMAGES):
                return 3
        elif node.target in (torch.flatten, "flatten", "view", "reshape", torch.reshape):
            return 1
    return 3


def _take_spikes(node: fx.Node) -> None:
    """For a neuron that also returns its membrane, connect the readers of its spikes to the neuron
    itself. A membrane that the model returns beside the spikes is dropped.
    """
    for user in list(node.users):
        if user.op == "call_function" and user.target is operator.getitem:
            if user.args[1] == 0:
                user.replace_all_uses_with(node)
                node.graph.erase_node(user)
            elif any(reader.op != "output" for reader in user.users):
                raise RefusalError(
                    "its membrane is read", "read its spikes, or end the network with a linear"
                )


def _one_head(root: Traced) -> Iterator[Violation]:
    """Make the output one tensor: a neuron's spikes, if the model returns only these and its
    membrane.
    """
    last = next(node for node in root.graph.nodes if node.op == "output")
    values = [last.args[0]]
    while any(isinstance(value, tuple | list) for value in values):
        values = [part for value in values for part in _parts(value)]
    spikes = values[0]
    others = [
        value
        for value in values[1:]
        if not (isinstance(value, fx.Node) and value.all_input_nodes == [spikes])
    ]
    if not isinstance(spikes, fx.Node) or others:
        shown = ", ".join(str(getattr(value, "target", value)) for value in values)
        yield Violation(
            path="output",
            reason=f"the model returns {len(values)} values ({shown})"
            if others
            else f"the model returns a {type(spikes).__name__.removeprefix('immutable_')}",
            mend="return one tensor, the spikes or the current of the last layer",
        )
        return
    if _is_membrane(spikes):
        yield Violation(
            path=str(spikes.all_input_nodes[0].target),
            reason="its membrane is read",
            mend="read its spikes, or end the network with a linear",
        )
        return
    last.args = (spikes,)
    root.graph.eliminate_dead_code()


def _is_membrane(value: fx.Node) -> bool:
    return value.op == "call_function" and value.target is operator.getitem


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def _given(model: nn.Module, timesteps: int, *, static: bool) -> Callable[[Tensor], Tensor]:
    """The mean over time of the outputs of `model`, computed by its own framework from rest."""
    multi_step = any(getattr(part, "step_mode", "s") == "m" for part in model.modules())

    def run(x: Tensor) -> Tensor:
        steps = torch.stack([x] * timesteps) if static else x
        with ExitStack() as stack, evaluating(model):
            for part in model.modules():
                framework = _framework(part)
                if framework is not None:
                    stack.enter_context(framework.at_rest(part))
            if multi_step:
                return _spikes(model(steps)).mean(0)
            return torch.stack([_spikes(model(step)) for step in steps]).mean(0)

    return run


def _spikes(returned: Any) -> Tensor:
    while isinstance(returned, tuple | list):  # a neuron that also returns its membrane
        returned = returned[0]
    return returned


def _add_time(root: fx.GraphModule, timesteps: int, *, static: bool) -> None:
    first = next(node for node in root.graph.nodes if node.op == "placeholder")
    root.add_submodule("time_in", Repeat(timesteps) if static else MergeTime())
    with root.graph.inserting_after(first):
        timed = root.graph.call_module("time_in", (first,))
    first.replace_all_uses_with(timed, delete_user_cb=lambda user: user is not timed)
    last = next(node for node in root.graph.nodes if node.op == "output")
    root.add_submodule("time_mean", TimeMean(timesteps))
    with root.graph.inserting_before(last):
        mean = root.graph.call_module("time_mean", (last.args[0],))
    last.args = (mean,)
