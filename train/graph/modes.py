"""Training and evaluation mode of a module: entering a mode, and comparing the two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import fx, nn
from torch.fx.node import map_arg


@contextmanager
def mode(module: nn.Module, *, training: bool) -> Iterator[None]:
    """Set the mode of a module; afterwards, each submodule gets its own mode back."""
    modes = [(part, part.training) for part in module.modules()]
    module.train(training)
    try:
        yield
    finally:
        for part, own in modes:
            part.training = own


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Set evaluation mode; afterwards, each submodule gets its own mode back."""
    with mode(module, training=False):
        yield


def difference(training: fx.Graph, evaluation: fx.Graph) -> str:
    """What a forward does in only one of the modes, as the end of a sentence; empty if they agree.

    A function with an argument for the mode, such as dropout, counts as the same in both.
    """
    first, second = _calls(training), _calls(evaluation)
    if first == second:
        return ""
    parts = []
    for here, there, name in ((first, second, "training"), (second, first, "evaluation")):
        more = Counter(_name(call) for call in here) - Counter(_name(call) for call in there)
        if more:
            parts.append(f"{', '.join(more)} in {name} alone")
    if parts:
        return f"it calls {' and '.join(parts)}"
    changed = next(_name(a) for a, b in zip(first, second, strict=True) if a != b)
    if changed == "output":
        return "it returns something else in training than in evaluation"
    return f"it calls {changed} with other arguments in training than in evaluation"


Call = tuple[str, Any, str, str]


def _calls(graph: fx.Graph) -> list[Call]:
    places = {node: f"%{place}" for place, node in enumerate(graph.nodes)}

    def shown(arguments: Any) -> str:
        return repr(map_arg(arguments, places.__getitem__))

    return [
        (node.op, node.target, shown(node.args), shown(_without_mode(node.kwargs)))
        for node in graph.nodes
    ]


def _without_mode(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "training"}


def _name(call: Call) -> str:
    _, target, *_ = call
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))
