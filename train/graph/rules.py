"""The output value of each kind of layer, or the reason why the layer has no integer form.

There is one method per kind of layer. It takes and returns a `Value` of :mod:`train.graph`; None
means that the layer was refused, and the `Analysis` then has the reason. :mod:`train.graph.trace`
walks the model and calls these methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import fx, nn

from lbq_hw.network import Shape
from lbq_hw.train.data import InputSpec
from lbq_hw.train.graph import (
    READOUT,
    Analysis,
    Identity,
    Levels,
    Norm,
    Placed,
    Population,
    Readout,
    Sum,
    Synapse,
    Value,
    several_outputs,
    terms,
    windows,
)
from lbq_hw.train.graph.windows import NO_SIDES
from lbq_hw.train.neurons import Neuron

_READS_JOINS = "join tensors of one kind, and let each layer read the whole concatenation"
_READS_PADS = "let only convolutions, linear layers or pools read a padded tensor"


class Rules:
    """The rules for one model; its nodes carry their shapes in ``meta["shape"]``."""

    def __init__(self, found: Analysis, spec: InputSpec) -> None:
        self.found = found
        self.spec = spec

    def _shape(self, node: fx.Node) -> tuple[int, ...]:
        return node.meta.get("shape", ())

    def _image_shape(self, node: fx.Node) -> Shape:
        return windows.image_shape(self._shape(node))

    def _identity(self, path: str, value: Value) -> Value:
        """Levels that become a current without weights."""
        if not isinstance(value, Levels):
            joined = not isinstance(value, Readout | None) and any(t.placed for t in terms(value))
            if joined:
                self.found.refuse(
                    path, "acts on a concatenation of different kinds of tensors", _READS_JOINS
                )
            return None if joined else value
        if value.pad != NO_SIDES:
            self.found.refuse(path, "acts on levels that were padded", _READS_PADS)
            return None
        return Identity(levels=value)

    def neuron(self, node: fx.Node, path: str, module: Neuron, value: Value) -> Value:
        if isinstance(value, Readout):
            self.found.refuse(path, "comes after the readout", "end the model with TimeMean")
            return None
        current = self._identity(path, value)
        if current is None:
            return None
        assert not isinstance(current, Levels | Readout)
        shape = self._image_shape(node)
        self.found.populations.append(
            Population(name=path, neuron=module, current=current, shape=shape)
        )
        return Levels(source=path, neuron=module, shape=shape)

    def synapse(
        self, node: fx.Node, path: str, module: nn.Conv2d | nn.Conv1d | nn.Linear, value: Value
    ) -> Value:
        if not isinstance(value, Levels):
            return self._on_current(
                path,
                value,
                "weights act on a current, not on burst levels",
                "put a neuron in front",
            )
        source = node.all_input_nodes[0]
        if isinstance(module, nn.Conv2d | nn.Conv1d):
            if module.padding_mode != "zeros":
                self.found.refuse(
                    path, f"padding_mode is {module.padding_mode!r}", "use padding_mode='zeros'"
                )
        elif len(self._shape(source)) != 2:
            self.found.refuse(path, "a linear layer acts on images", "flatten them first")
            return None
        return Synapse(levels=value, path=path, module=module)

    def _on_current(self, path: str, value: Value, reason: str, mend: str) -> None:
        """Refuse a layer that needs levels. A sum of levels (as in SEW ResNets) gets a reason of
        its own, since the sum must change and not the layer that reads it.
        """
        if isinstance(value, Sum) and any(isinstance(t.origin, Identity) for t in terms(value)):
            names = sorted({t.origin.levels.source for t in terms(value)})
            reason = f"acts on a sum of burst levels ({', '.join(names)}), which is no burst level"
            mend = "add currents before a neuron, not levels after it (no SEW residuals)"
        self.found.refuse(path, reason, mend)

    def norm(self, path: str, module: nn.BatchNorm2d | nn.BatchNorm1d, value: Value) -> Value:
        if isinstance(value, Readout):
            self.found.refuse(path, "normalizes the logits", "drop it or fold it into the linear")
            return None
        if not module.track_running_stats:
            self.found.refuse(
                path, "has no running statistics", "build it with track_running_stats=True"
            )
            return None
        current = self._identity(path, value)
        if current is None:
            return None
        assert not isinstance(current, Levels | Readout)
        return Norm(current=current, module=module)

    def max_pool(self, node: fx.Node, path: str, value: Value, pool: nn.Module | None) -> Value:
        pad = value.pad if isinstance(value, Levels) else NO_SIDES
        before, after = self._shape(node.all_input_nodes[0]), self._shape(node)
        window = windows.maximum(node, before, after, pool, pad)
        if window is None:
            self.found.refuse(
                path,
                "this form of max-pool has no integer form",
                "use kernel, stride and padding as constants, windows that divide the image, no "
                "dilation, no ceil_mode, and pad both sides alike",
            )
            return None
        if not isinstance(value, Levels) or value.neuron is None:
            return self._on_current(
                path, value, "max-pool acts on a current", "move it after the neuron"
            )
        if value.max_pool or value.sum_pool:
            self.found.refuse(path, "a pool follows a pool", "merge the two windows into one")
            return None
        shape = window.output_shape(_unpadded(value))
        return replace(value, max_pool=window, shape=shape, pad=NO_SIDES)

    def average(self, node: fx.Node, path: str, value: Value, pool: nn.Module | None) -> Value:
        if not isinstance(value, Levels):
            return self._on_current(
                path, value, "average pool acts on a current", "move it after the neuron"
            )
        if value.sum_pool:
            self.found.refuse(path, "a pool follows a pool", "merge the two windows into one")
            return None
        before, after = self._shape(node.all_input_nodes[0]), self._shape(node)
        window = windows.average(node, before, after, pool, value.pad)
        if window is None:
            mend = "average whole windows of height and width, count_include_pad=True, no ceil_mode"
            if value.pad != NO_SIDES:
                mend = "pad both sides alike, and less than the window"
            if pool is None:
                mend += ", or with train.layers.TimeMean over time"
            self.found.refuse(path, "this form of average has no integer form", mend)
            return None
        shape = window.output_shape(_unpadded(value))
        divisor = windows.divisor(node, pool) or window.taps
        return replace(value, sum_pool=window, divisor=divisor, shape=shape, pad=NO_SIDES)

    def zero_pad(self, node: fx.Node, path: str, value: Value, layer: nn.Module | None) -> Value:
        sides = windows.zero_pad(node, layer)
        if sides is None:
            self.found.refuse(path, "does not pad height and width with zeros", "use nn.ZeroPad2d")
            return None
        if not isinstance(value, Levels):
            return self._on_current(
                path, value, "pads a current", "pad the levels that the layer before it reads"
            )
        first, more = value.pad, sides
        return replace(
            value,
            shape=self._image_shape(node),
            pad=(
                (first[0][0] + more[0][0], first[0][1] + more[0][1]),
                (first[1][0] + more[1][0], first[1][1] + more[1][1]),
            ),
        )

    def flatten(self, node: fx.Node, path: str, value: Value) -> Value:
        before, after = self._shape(node.all_input_nodes[0]), self._shape(node)
        flat = len(after) == 2 and after[0] == before[0] and isinstance(value, Levels)
        images = all(1 < len(shape) < 5 for shape in (before, after)) and before[:1] == after[:1]
        same = images and windows.image_shape(before) == windows.image_shape(after)
        if after != before and not flat and not same:
            self.found.refuse(
                path,
                f"reshapes {before} to {after}",
                "flatten levels from dimension 1, and use TimeMean for the readout",
            )
            return None
        return value

    def repeat(self, path: str, value: Value) -> Value:
        origin = [value] if isinstance(value, Levels) else []
        if isinstance(value, Synapse | Identity | Norm | Sum):
            origin = [term.origin.levels for term in terms(value)]
        if not self.spec.static or any(levels.neuron is not None for levels in origin):
            self.found.refuse(
                path,
                "repeats a tensor that already has timesteps",
                "repeat a static input's current only",
            )
            return None
        return value

    def time_mean(self, path: str, value: Value) -> Value:
        if isinstance(value, Levels) and value.neuron is not None:
            return Readout(current=Identity(levels=value))
        if isinstance(value, Synapse | Norm | Sum | Placed):
            return Readout(current=value)
        self.found.refuse(
            path,
            "the readout averages neither a current nor spikes",
            "put it after the last linear, or after the last neuron",
        )
        return None

    def sum(self, node: fx.Node, path: str, operands: list[Value]) -> Value:
        if len(node.args) != 2 or len(operands) != 2 or node.kwargs:
            self.found.refuse(
                path, "adds something that is not a current", "add two activations of one shape"
            )
            return None
        if any(operand is None or isinstance(operand, Readout) for operand in operands):
            return None
        shapes = {self._shape(arg) for arg in node.all_input_nodes}
        if len(shapes) != 1:
            self.found.refuse(
                path, f"adds different shapes {sorted(shapes)}", "project one of them"
            )
            return None
        currents = tuple(self._identity(path, operand) for operand in operands)
        if None in currents:
            return None
        return Sum(currents=currents)  # type: ignore[arg-type]

    def join(self, path: str, operands: Sequence[tuple[Value, int]], mend: str) -> Value:
        """A concatenation that `joins.sink` left: parts of a readout, each with its channels."""
        if any(value is None for value, _ in operands):
            return None
        channels, first, placed = sum(size for _, size in operands), 0, list[Placed]()
        for value, size in operands:
            current = value.current if isinstance(value, Readout) else value
            origins = () if isinstance(current, Levels | None) else terms(current)
            if isinstance(current, Levels | None) or any(
                isinstance(term.origin, Identity) or term.placed for term in origins
            ):
                self.found.refuse(
                    path, "joins tensors for a layer that cannot read them part by part", mend
                )
                return None
            placed.append(Placed(current=current, first=first, size=size, channels=channels))
            first += size
        whole = Sum(currents=tuple(placed))
        readouts = [isinstance(value, Readout) for value, _ in operands]
        return Readout(current=whole) if all(readouts) else whole

    def output(self, node: fx.Node) -> Value:
        value = self.found.values.get(node.args[0]) if isinstance(node.args[0], fx.Node) else None  # type: ignore[arg-type]
        if isinstance(value, Synapse | Norm | Sum | Placed) and self.found.timesteps == 1:
            value = Readout(current=value)
        if isinstance(value, Readout):
            source = node.all_input_nodes[0]
            self.found.populations.append(
                Population(
                    name=READOUT,
                    neuron=None,
                    current=value.current,
                    shape=self._image_shape(source),
                )
            )
        elif not isinstance(node.args[0], fx.Node):
            self.found.violations.append(several_outputs(node.args[0]))
        elif not self.found.violations:
            timed = self.found.timesteps > 1
            self.found.refuse(
                "output",
                f"the model does not end in logits{' averaged over time' if timed else ''}",
                f"end it with Linear{' and TimeMean' if timed else ''}",
            )
        return value

    def check_max_pools(self) -> None:
        for population in self.found.populations:
            pools = {levels.max_pool for levels in self.found.consumed(population.name)}
            if len(pools) > 1:
                self.found.refuse(
                    population.name,
                    "its levels are used both with and without a max-pool, or with two",
                    "let every consumer read the same pooled levels",
                )


def _unpadded(levels: Levels) -> Shape:
    channels, height, width = levels.shape
    (top, bottom), (left, right) = levels.pad
    return channels, height - top - bottom, width - left - right
