"""From an ANN to a burst network: every ReLU becomes an LBQ neuron with a step fitted to data."""

from __future__ import annotations

import copy
import itertools
import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from lbq_hw.train.data import Feed, InputSpec
from lbq_hw.train.graph.modes import evaluating
from lbq_hw.train.graph.trace import Tracer, graph_of
from lbq_hw.train.layers import Repeat, TimeMean
from lbq_hw.train.neurons import LBQ, softplus_inverse

BATCHES = 16  # of the loader, on which steps are fitted
SAMPLES = 2**18  # currents per neuron layer to which a step is fitted
_STEPS = 128  # candidate steps, up to the largest current over N
_ADDS = (operator.add, operator.iadd, torch.add, "add", "add_")
_WITH_BIAS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.Conv1d, nn.Conv2d, nn.Linear)
_FUNCTIONS = (F.relu, torch.relu, torch.relu_, "relu", "relu_")


class ConversionError(ValueError):
    """An ANN that cannot be converted; the message is one sentence for the user."""


def convert(
    ann: nn.Module,
    spec: InputSpec,
    loader: Any,
    *,
    timesteps: int = 1,
    capacity: int = 5,
    batches: int = BATCHES,
    **options: Any,
) -> fx.GraphModule:
    """A copy of an ANN with an `LBQ` in place of every ReLU, ready for `fit` or `prepare`.

    A ReLU that is called several times becomes as many neurons. The initial step gamma of each
    neuron minimizes the mean squared error between its levels, 0 to ``capacity``, and the ReLU's
    outputs on ``batches`` batches of the loader (see `Feed`). Neurons round down, and the nearest
    level is wanted, so half a step is added to the bias of the norm or layer before the neuron, if
    it feeds this neuron alone. ``options`` are those of `LBQ`.

    With T = 1 the network is the ANN with quantized activations. With more timesteps, the currents
    of the input are repeated, logits are the mean over time, and steps are the same as for T = 1.
    """
    model = copy.deepcopy(ann)
    root = fx.GraphModule(model, graph_of(model, Tracer(), training=False), type(ann).__name__)
    calls = [node for node in root.graph.nodes if _is_relu(root, node)]
    if not calls:
        raise ConversionError(
            f"{type(ann).__name__} has no ReLU to convert: give an ANN with ReLUs"
        )
    _undo_in_place(root, calls)
    currents = _currents(root, spec, loader, calls, batches)
    taken = {name for name, module in root.named_modules() if type(module) is not nn.ReLU}
    for node in calls:
        neuron = LBQ(timesteps=timesteps, capacity=capacity, **options)
        neuron.to(currents[node].device)
        step = fitted_step(currents[node], capacity)
        _set_step(neuron, step)
        _add_half(root, node, step / 2)
        _replace(root, node, _free_name(root, node, taken), neuron)
    if timesteps > 1:
        _give_time(root, timesteps)
    root.graph.lint()
    root.delete_all_unused_submodules()
    root.recompile()
    return root.train(ann.training)


def fitted_step(currents: Tensor, capacity: int) -> float:
    """The step with which ``gamma * clip(round(x / gamma), 0, N)`` is nearest to ``relu(x)``."""
    x = currents.relu().double()
    largest = float(x.max()) if x.numel() else 0.0
    if not largest > 0:
        return 1.0  # a layer that never fires has no scale
    best, least = largest / capacity, float("inf")
    for index in range(1, _STEPS + 1):
        step = largest / capacity * index / _STEPS
        levels = torch.floor(x / step + 0.5).clamp(max=capacity)
        error = float((step * levels - x).square().mean())
        if error < least:
            best, least = step, error
    return best


def _is_relu(root: fx.GraphModule, node: fx.Node) -> bool:
    if node.op == "call_module":
        return type(root.get_submodule(str(node.target))) is nn.ReLU
    return node.op in ("call_function", "call_method") and node.target in _FUNCTIONS


def _undo_in_place(root: fx.GraphModule, calls: list[fx.Node]) -> None:
    """An in-place ReLU also changes its input, so later readers of the input get its output."""
    order = {node: index for index, node in enumerate(root.graph.nodes)}
    for node in calls:
        if node.op == "call_module":
            module = root.get_submodule(str(node.target))
            in_place = isinstance(module, nn.ReLU) and module.inplace
        else:
            named = str(getattr(node.target, "__name__", node.target))
            in_place = named.endswith("_") or node.kwargs.get("inplace") or True in node.args[1:]
        source = node.all_input_nodes[0]
        for user in list(source.users) if in_place else ():
            if order[user] > order[node]:
                user.replace_input_with(source, node)


class _Watcher(fx.Interpreter):
    """Keeps a share of the inputs of certain nodes."""

    def __init__(self, root: fx.GraphModule, wanted: list[fx.Node], share: int) -> None:
        super().__init__(root)
        self._wanted, self._share = set(wanted), share
        self.kept: dict[fx.Node, list[Tensor]] = {node: [] for node in wanted}

    def run_node(self, n: fx.Node) -> Any:
        if n in self._wanted:
            values = self.env[n.all_input_nodes[0]].detach().flatten()
            stride = max(1, len(values) // self._share)
            self.kept[n].append(values[::stride].clone())  # a ReLU may be in place
        return super().run_node(n)


@torch.no_grad()
def _currents(
    root: fx.GraphModule, spec: InputSpec, loader: Any, calls: list[fx.Node], batches: int
) -> dict[fx.Node, Tensor]:
    """The inputs of every ReLU, or an even share of them."""
    device = next((p.device for p in root.parameters()), torch.device("cpu"))
    feed = Feed(loader, spec, device, role="loader")
    watcher = _Watcher(root, calls, SAMPLES // min(batches, len(feed)))
    with evaluating(root):
        for x, _ in itertools.islice(feed, batches):
            watcher.run(x)
    return {node: torch.cat(found) for node, found in watcher.kept.items()}


@torch.no_grad()
def _set_step(neuron: LBQ, step: float) -> None:
    step = max(step, 2 * neuron.eps)
    if neuron.learn_gamma:
        neuron.rho.fill_(softplus_inverse(step - neuron.eps))
    else:
        neuron.step.fill_(step)


@torch.no_grad()
def _add_half(root: fx.GraphModule, node: fx.Node, half: float) -> None:
    """Add a constant to a current, in the bias of a norm or layer that feeds this neuron alone."""
    waiting, source = [node.all_input_nodes[0]], None
    while waiting:
        source = waiting.pop()
        if len(source.users) != 1:
            continue
        if source.target in _ADDS:
            waiting += source.all_input_nodes
            continue
        module = root.get_submodule(str(source.target)) if source.op == "call_module" else None
        bias = getattr(module, "bias", None)
        if isinstance(module, _WITH_BIAS) and isinstance(bias, Tensor):
            bias.add_(half)
            return


def _free_name(root: fx.GraphModule, node: fx.Node, taken: set[str]) -> str:
    """The path of a neuron: the path of the ReLU, with a number if the ReLU is called again."""
    wanted = str(node.target) if node.op == "call_module" else f"{_owner(root, node)}{node.name}"
    names = itertools.chain([wanted], (f"{wanted}_{count}" for count in itertools.count(2)))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name


def _owner(root: fx.GraphModule, node: fx.Node) -> str:
    """The path, with a final dot, of the module that contains the layer before a function."""
    before = node.all_input_nodes[0]
    while before.op != "call_module" and before.all_input_nodes:
        before = before.all_input_nodes[0]
    path = str(before.target).rpartition(".")[0] if before.op == "call_module" else ""
    return f"{path}." if path and not isinstance(root.get_submodule(path), nn.Sequential) else ""


def _replace(root: fx.GraphModule, node: fx.Node, name: str, neuron: LBQ) -> None:
    source = node.all_input_nodes[0]
    root.add_submodule(name, neuron)
    with root.graph.inserting_after(node):
        fires = root.graph.call_module(name, (source,))
    node.replace_all_uses_with(fires)
    root.graph.erase_node(node)


def _give_time(root: fx.GraphModule, timesteps: int) -> None:
    """Repeat a value without time at the point where it meets the output of neurons; average the
    logits over time.
    """
    timed: set[fx.Node] = set()
    repeated: dict[fx.Node, fx.Node] = {}
    for node in list(root.graph.nodes):
        fires = node.op == "call_module" and isinstance(root.get_submodule(str(node.target)), LBQ)
        if not fires and timed.isdisjoint(node.all_input_nodes):
            continue
        if node.op == "output":
            root.add_submodule("mean", TimeMean(timesteps))
            with root.graph.inserting_before(node):
                mean = root.graph.call_module("mean", (node.all_input_nodes[0],))
            node.replace_input_with(node.all_input_nodes[0], mean)
            continue
        timed.add(node)
        for source in node.all_input_nodes:
            if source in timed:
                continue
            if source not in repeated:
                name = f"{source.name!s}_repeat"
                root.add_submodule(name, Repeat(timesteps))
                with root.graph.inserting_after(source):
                    repeated[source] = root.graph.call_module(name, (source,))
            node.replace_input_with(source, repeated[source])
