"""Allocates tensors in the plane memory: a shape, a lifetime and a base address for each.

With external memory, a layer's output may overwrite the source of its identity. This is safe
because a step reads only its own pixel of that source, before it writes that pixel. But no word may
hold several pixels or tiles: a write to a word's first chunk clears the flag of the whole word,
which later pixels or tiles may still need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lbq_hw import numeric
from lbq_hw.compiler.patches import Rewritten
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT, Layer, Network


@dataclass(frozen=True, kw_only=True, eq=False)
class LaidOut(Rewritten):
    """A network with its `tensors`, placed, by name."""

    tensors: dict[str, Tensor]

    @property
    def end(self) -> int:
        """Plane words that the network needs."""
        return max(tensor.end for tensor in self.tensors.values())

    @property
    def row_words(self) -> int:
        """Words of its longest row."""
        return max(tensor.row_words for tensor in self.tensors.values())


def lay_out(forms: Sequence[Rewritten], config: CoreConfig) -> LaidOut:
    """The first form whose activations fit, with rows that fit, too, if there is one; or the form
    with the smallest activations. With external memory, an output may overwrite the source of its
    identity.
    """
    found = []
    for form in forms:
        tensors = shapes(form.network, config)
        over = overwritten(form.network, tensors, config) if config.external else {}
        found.append(LaidOut(**vars(form), tensors=place_over(tensors, over, config.summary)))
    fitting = [one for one in found if one.end <= config.plane_words]
    whole = [one for one in fitting if one.row_words <= config.row_words]
    return next(iter(whole or fitting), None) or min(found, key=lambda one: one.end)


def core_pitch(channels: int, config: CoreConfig) -> int:
    """Bits from one pixel to the next in a tensor that the core writes."""
    if channels > config.lanes // 2:
        return -(-channels // config.lanes) * config.lanes
    return 1 << (max(channels, config.granule) - 1).bit_length()


def shapes(network: Network, config: CoreConfig) -> dict[str, Tensor]:
    """Every tensor of the network, with its lifetime; not yet placed."""
    dies = {
        path.source: index for index, layer in enumerate(network.layers) for path in layer.paths
    }
    by_identity = any(
        path.is_identity and path.source == INPUT
        for layer in network.layers
        for path in layer.paths
    )
    channels = network.input.shape[0]
    tensors = {
        INPUT: Tensor(
            name=INPUT,
            shape=network.input.tensor_shape,
            planes=network.input.bits,
            frames=1 if network.input.static else network.timesteps,
            pitch=core_pitch(channels, config) if by_identity else channels,
            word=config.word,
            born=-1,
            dies=dies.get(INPUT, -1),
        )
    }
    for index, layer in enumerate(network.layers[:-1]):
        tensors[layer.name] = Tensor(
            name=layer.name,
            shape=layer.output_shape,
            planes=numeric.plane_count(layer.capacity),
            frames=network.timesteps,
            pitch=core_pitch(layer.shape[0], config),
            word=config.word,
            born=index,
            dies=dies.get(layer.name, index),
        )
    return tensors


def overwritten(network: Network, tensors: dict[str, Tensor], config: CoreConfig) -> dict[str, str]:
    """The tensor that a layer's output overwrites, by the name of the layer."""
    found: dict[str, str] = {}
    for index, layer in enumerate(network.layers[:-1]):
        for name in _bypassed(layer):
            source, output = tensors[name], tensors[layer.name]
            same = all(
                getattr(source, field) == getattr(output, field)
                for field in ("shape", "planes", "frames", "pitch")
            )
            alone = config.word == config.lanes and output.pitch % config.word == 0
            if same and alone and source.dies == index and layer.name not in found:
                found[layer.name] = name
    return found


def _bypassed(layer: Layer) -> list[str]:
    """Tensors that only an identity of this layer reads, pixel by pixel."""
    others = {path.source for path in layer.paths if not path.is_identity or path.pool}
    names = [path.source for path in layer.paths if path.is_identity and not path.pool]
    if layer.pool is not None:
        return []
    return [name for name in names if name not in others and name != INPUT]


def place_over(tensors: dict[str, Tensor], over: dict[str, str], align: int) -> dict[str, Tensor]:
    """Every tensor with its base; a tensor and the one that overwrites it share a base."""
    first: dict[str, str] = {}
    for name in tensors:
        first[name] = first[over[name]] if name in over else name
    merged = {
        name: replace(tensor, dies=max(tensors[n].dies for n, f in first.items() if f == name))
        for name, tensor in tensors.items()
        if first[name] == name
    }
    placed = place(merged, align)
    return {name: replace(tensors[name], base=placed[first[name]].base) for name in tensors}


def place(tensors: dict[str, Tensor], align: int) -> dict[str, Tensor]:
    """Give every tensor a base, a multiple of `align`; tensors alive together do not overlap.

    First fit, once with the largest first and once in the order of birth; the better result wins.
    """
    in_order = list(tensors.values())
    by_size = sorted(in_order, key=lambda tensor: -tensor.words)
    plans = [_first_fit(order, align) for order in (by_size, in_order)]
    best = min(plans, key=lambda plan: max(tensor.end for tensor in plan.values()))
    return {name: best[name] for name in tensors}


def _first_fit(order: Sequence[Tensor], align: int) -> dict[str, Tensor]:
    placed: dict[str, Tensor] = {}
    for tensor in order:
        base = 0
        others = [o for o in placed.values() if o.born <= tensor.dies and tensor.born <= o.dies]
        for other in sorted(others, key=lambda other: other.base):
            if base + tensor.words <= other.base:
                break
            base = max(base, -(-other.end // align) * align)
        placed[tensor.name] = replace(tensor, base=base)
    return placed
