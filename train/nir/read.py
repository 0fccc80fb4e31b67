"""A graph of NIR as a module of this project's layers."""

from __future__ import annotations

import json
import keyword
import math
import operator
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, get_args

import h5py
import nir
import numpy as np
import torch
from torch import fx, nn

from lbq_hw.train.graph import GraphError, RefusalError, Violation
from lbq_hw.train.layers import MergeTime, Repeat, TimeMean
from lbq_hw.train.nir import check
from lbq_hw.train.nir.node import Reading, Reset, default_dt

META = "lbq"
"""Key of the metadata in graphs from `train.nir.write`: their `Reading`, as JSON text."""
_HDF5 = re.compile(r"^Unable to synchronously open file \((.*)\)$")
_ENDS = "end the network with a linear layer, or with IF"


class NirError(ValueError):
    """A file that cannot be read; one sentence for the user."""


def load(
    path: Path | str,
    *,
    dt: float | None = None,
    reset: Reset | None = None,
    strict: bool | None = None,
) -> tuple[nir.NIRGraph, Reading]:
    """The graph of a file and its reading: the given values, else the file's, else NIR's defaults
    for the file's version.
    """
    if dt is not None and not 0 < dt < math.inf:
        raise NirError(f"dt must be above 0, not {dt:g}: give the timestep of the graph")
    if not Path(path).is_file():
        what = f"{path} is not a file" if Path(path).exists() else f"there is no {path}"
        raise NirError(f"{what}: give a NIR graph that nir.write made")
    fields: list[str] = []
    try:
        with h5py.File(path, "r") as file:
            check.file(file)
            file.visit(fields.append)
        graph = nir.read(path, type_check=False)
        if not isinstance(graph, nir.NIRGraph):
            raise ValueError(f"it holds a {type(graph).__name__}, not a graph")
    except Exception as error:  # nir.read raises errors of any kind for a broken file
        reason = _HDF5.sub(r"\1", str(error)) or type(error).__name__
        raise NirError(
            f"{path} is not a NIR file ({reason}): give one that nir.write made"
        ) from error
    told = _told(graph)
    subtracts = not any(name.endswith("/v_reset") for name in fields)
    return graph, Reading(
        dt=told.get("dt") or default_dt(graph) if dt is None else dt,
        reset=reset or told.get("reset") or ("subtract" if subtracts else "zero"),
        strict=told.get("strict", True) if strict is None else strict,
    )


def _told(graph: nir.NIRGraph) -> dict[str, Any]:
    text = graph.metadata.get(META)
    if text is None:
        return {}
    known = {"dt": float, "reset": str, "strict": bool}
    try:
        told: Any = json.loads(text)
        good = isinstance(told, dict) and all(
            isinstance(told[key], kind) for key, kind in known.items()
        )
        good = good and told["reset"] in get_args(Reset) and told["dt"] > 0
    except (ValueError, TypeError, KeyError):
        good, told = False, {}
    if not good:
        raise NirError(f"the graph's metadata {META!r} is not what this project writes: {text}")
    return told


def module(
    graph: nir.NIRGraph, reading: Reading, *, timesteps: int, static: bool, flat: bool = False
) -> fx.GraphModule:
    """A module that computes the same as the graph over `timesteps`, as `train.frameworks.adopt`.

    `flat`: the graph's input is a vector, and the module's input an image. GraphError with every
    node that has no exact form.
    """
    return _Builder(graph, reading, timesteps).build(static=static, flat=flat)


class _Builder:
    def __init__(self, graph: nir.NIRGraph, reading: Reading, timesteps: int) -> None:
        self.nodes, self.reading, self.timesteps = graph.nodes, reading, timesteps
        self.sources: dict[str, list[str]] = {name: [] for name in graph.nodes}
        self.root = nn.Module()
        self.graph = fx.Graph()
        self.violations: list[Violation] = []
        for source, target in graph.edges:
            if source in self.nodes and target in self.nodes:
                self.sources[target].append(source)
            else:
                self._refuse(
                    f"{source} -> {target}",
                    "an end of the edge is not a node",
                    "remove the edge, or write its node",
                )

    def build(self, *, static: bool, flat: bool) -> fx.GraphModule:
        ends = [name for name, node in self.nodes.items() if isinstance(node, nir.Output)]
        starts = [name for name, node in self.nodes.items() if isinstance(node, nir.Input)]
        if len(ends) != 1 or len(starts) != 1:
            self._refuse(
                "graph",
                f"it has {len(starts)} inputs and {len(ends)} outputs",
                "join them in one node, so that there is one of each",
            )
        else:
            self._check_edges(starts[0], ends[0])
        if self.violations:
            raise GraphError(self.violations)
        made: dict[str, fx.Node] = {}
        for name in self._order():
            node = self.nodes[name]
            if isinstance(node, nir.Input):
                start = self.graph.placeholder("x")
                made[name] = self._call(
                    "time_in", Repeat(self.timesteps) if static else MergeTime(), start
                )
                if flat:
                    made[name] = self._call("flatten_in", nn.Flatten(), made[name])
            elif not isinstance(node, nir.Output):
                inputs = [made[source] for source in self.sources[name] if source in made]
                layer = self._layer(name, node)
                if layer is not None and inputs:
                    made[name] = self._call(self._attribute(name), layer, self._sum(inputs))
        if self.violations:
            raise GraphError(self.violations)
        last = made[self.sources[ends[0]][0]]
        self.graph.output(self._call("time_mean", TimeMean(self.timesteps), last))
        return fx.GraphModule(self.root, self.graph).eval()

    def _check_edges(self, start: str, end: str) -> None:
        """Refuse every node without an input or a reader, except at the two ends of the graph."""
        read = {source for sources in self.sources.values() for source in sources}
        for name, sources in self.sources.items():
            if name == start and sources:
                self._refuse(name, "it is the input, but an edge leads to it", "take the edge out")
            elif name != start and not sources:
                self._refuse(name, "it has no input", "connect it, or take it out")
            if name == end and name in read:
                self._refuse(name, "it is the output, but a node reads it", "take the edge out")
            elif name != end and name not in read:
                self._refuse(name, "nothing reads it", "connect it, or take it out")
        if len(self.sources[end]) > 1:
            self._refuse(
                end,
                f"it is the output, and has {len(self.sources[end])} inputs",
                "give it one, or put a node that sums them before it",
            )

    def _order(self) -> Iterator[str]:
        sorter = TopologicalSorter(self.sources)
        try:
            yield from sorter.static_order()
        except CycleError as error:
            around = " -> ".join(error.args[1])
            self._refuse(around, "it is recurrent", "use a network without loops")
            raise GraphError(self.violations) from None

    def _refuse(self, path: str, reason: str, mend: str) -> None:
        self.violations.append(Violation(path=path, reason=reason, mend=mend))

    def _attribute(self, name: str) -> str:
        """A node's name as the name of a module: without dots, and no attribute of the root."""
        plain = re.sub(r"\W", "_", name)
        taken = ("time_in", "flatten_in", "time_mean")
        while plain in taken or keyword.iskeyword(plain) or hasattr(self.root, plain):
            plain += "_"
        return plain

    def _call(self, name: str, layer: nn.Module, argument: fx.Node) -> fx.Node:
        self.root.add_module(name, layer)
        return self.graph.call_module(name, (argument,))

    def _sum(self, inputs: list[fx.Node]) -> fx.Node:
        total, *others = inputs
        for other in others:
            total = self.graph.call_function(operator.add, (total, other))
        return total

    def _layer(self, name: str, node: nir.NIRNode) -> nn.Module | None:
        try:
            check.node(node)
            if isinstance(node, nir.IF | nir.LIF | nir.CubaLIF):
                return self.reading.neuron(node).build(self.timesteps)
            return _layer(node)
        except RefusalError as refusal:
            self._refuse(name, refusal.reason, refusal.mend)
            return None


def _layer(node: nir.NIRNode) -> nn.Module:
    if isinstance(node, nir.Conv2d):
        return _conv(node)
    if isinstance(node, nir.Linear | nir.Affine):
        return _linear(node)
    if isinstance(node, nir.AvgPool2d | nir.SumPool2d):
        divisor = 1 if isinstance(node, nir.SumPool2d) else None
        kernel, stride, padding = map(_pair, (node.kernel_size, node.stride, node.padding))
        return nn.AvgPool2d(kernel, stride, padding, divisor_override=divisor)
    if isinstance(node, nir.Flatten):
        start, end = int(node.start_dim), int(node.end_dim)
        return nn.Flatten(start + 1 if start >= 0 else start, end + 1 if end >= 0 else end)
    known = {
        nir.NIRGraph: ("it is a graph of its own", "give its nodes one by one, without recurrence"),
        nir.Delay: ("it delays its input", "use a network without delays"),
        nir.LI: ("its membrane is read, and leaks", _ENDS),
        nir.I: ("its membrane is read", _ENDS),
    }
    reason = f"{type(node).__name__} has no integer form"
    mend = "use Conv2d, Linear, Affine, AvgPool2d, SumPool2d, Flatten, IF, LIF or CubaLIF"
    raise RefusalError(*known.get(type(node), (reason, mend)))


def _conv(node: nir.Conv2d) -> nn.Conv2d:
    check.weight(node.weight, node.bias, 4)
    weight = _tensor(node.weight)
    if len(weight) % int(node.groups):
        raise RefusalError(
            f"its {int(node.groups)} groups do not divide its {len(weight)} outputs",
            "use groups that do",
        )
    padding = node.padding
    if isinstance(padding, bytes):
        padding = padding.decode()
    conv = nn.Conv2d(
        weight.shape[1] * int(node.groups),
        weight.shape[0],
        (weight.shape[2], weight.shape[3]),
        stride=_pair(node.stride),
        padding=padding if isinstance(padding, str) else _pair(padding),
        dilation=_pair(node.dilation),
        groups=int(node.groups),
        dtype=torch.float64,
    )
    return _filled(conv, weight, node.bias)


def _linear(node: nir.Linear | nir.Affine) -> nn.Linear:
    bias = node.bias if isinstance(node, nir.Affine) else None
    check.weight(node.weight, bias, 2)
    weight = _tensor(node.weight)
    linear = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
    return _filled(linear, weight, bias)


def _filled(layer: Any, weight: torch.Tensor, bias: Any) -> Any:
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(torch.zeros(len(weight)) if bias is None else _tensor(bias))
    return layer


def _tensor(values: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(values, np.float64))


def _pair(value: Any) -> tuple[int, int]:
    found = np.atleast_1d(np.asarray(value)).astype(int).tolist()
    return (found[0], found[-1])
