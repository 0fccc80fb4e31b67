"""A network of another framework in this project's layers: one walk over its torch.fx graph."""

from __future__ import annotations

import operator
from types import ModuleType

from torch import fx, nn

from train.frameworks import snntorch, spikingjelly
from train.frameworks.rules import RefusalError
from train.graph import GraphError, Violation
from train.layers import MergeTime, Repeat, TimeMean

_FRAMEWORKS: tuple[ModuleType, ...] = (snntorch, spikingjelly)
_LAYERS = (
    *(nn.Conv2d, nn.Linear, nn.BatchNorm1d, nn.BatchNorm2d, nn.MaxPool2d, nn.AvgPool2d),
    *(nn.AdaptiveAvgPool2d, nn.Flatten, nn.Dropout, nn.Dropout2d, nn.Identity),
)


def adopt(model: nn.Module, *, timesteps: int, static: bool) -> fx.GraphModule:
    """A module whose spikes are those of `model` over `timesteps`, and whose output is their mean.

    `model` computes one timestep, its neurons keep their membranes between calls (in snnTorch,
    ``init_hidden=True``), and membranes start from rest. Its last layer is one of neurons, whose
    spikes are then averaged, or one whose current is. With `static` one image serves every timestep
    and the module takes ``(B, C, H, W)``; else it takes ``(T, B, C, H, W)``. Parameters are shared
    with `model`. GraphError with every neuron that has no exact form.
    """
    root = fx.GraphModule(model, _Tracer().trace(model))
    violations: list[Violation] = []
    seen: set[str] = set()
    for node in list(root.graph.nodes):
        if node.op != "call_module":
            continue
        path, module = str(node.target), root.get_submodule(str(node.target))
        framework = _framework(module)
        try:
            if path in seen:
                raise RefusalError("is called more than once", "trace one timestep, not a loop")
            if framework is None:
                if isinstance(module, _LAYERS):
                    _set(root, path, _plain(module))
                continue
            seen.add(path)
            _set(root, path, framework.read(module).build(timesteps))
            _take_spikes(node)
        except RefusalError as refusal:
            violations.append(Violation(path=path, reason=refusal.reason, mend=refusal.mend))
    if violations:
        raise GraphError(violations)
    _add_time(root, timesteps, static=static)
    root.recompile()
    return root.eval()


def _framework(module: nn.Module) -> ModuleType | None:
    return next((one for one in _FRAMEWORKS if one.knows(module)), None)


class _Tracer(fx.Tracer):
    """Neurons and layers stay whole, also a framework's own kinds of torch's layers."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if _framework(m) is not None or isinstance(m, _LAYERS):
            return True
        return super().is_leaf_module(m, module_qualified_name)


def _plain(module: nn.Module) -> nn.Module:
    """Torch's own layer with the parameters of a framework's kind of it, which knows of time."""
    kind = next(kind for kind in _LAYERS if isinstance(module, kind))
    if type(module) is kind:
        return module
    twin = kind.__new__(kind)
    twin.__dict__.update(module.__dict__)
    return twin


def _set(root: fx.GraphModule, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(root.get_submodule(parent), name, module)


def _take_spikes(node: fx.Node) -> None:
    """A neuron that also returns its membrane: who reads the spikes, reads the neuron."""
    for user in list(node.users):
        if user.op == "call_function" and user.target is operator.getitem:
            if user.args[1] != 0:
                raise RefusalError(
                    "its membrane is read", "read its spikes, or end the network with a linear"
                )
            user.replace_all_uses_with(node)
            node.graph.erase_node(user)


def _add_time(root: fx.GraphModule, timesteps: int, *, static: bool) -> None:
    first = next(node for node in root.graph.nodes if node.op == "placeholder")
    root.add_submodule("time_in", Repeat(timesteps) if static else MergeTime())
    with root.graph.inserting_after(first):
        timed = root.graph.call_module("time_in", (first,))
    first.replace_all_uses_with(timed, delete_user_cb=lambda user: user is not timed)
    last = next(node for node in root.graph.nodes if node.op == "output")
    root.add_submodule("time_mean", TimeMean(timesteps))
    result = last.args[0]
    while isinstance(result, tuple | list):  # a neuron that also returns its membrane
        result = result[0]
    with root.graph.inserting_before(last):
        mean = root.graph.call_module("time_mean", (result,))
    last.args = (mean,)
    root.graph.eliminate_dead_code()
