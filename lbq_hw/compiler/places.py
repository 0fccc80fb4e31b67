"""Where tensors lie when a layer's output may overwrite the source of its identity.

A step reads its own pixel of an identity's source and no other, before it writes that pixel. So the
output may lie in the same words, if no word is shared: a write to a word's first chunk clears the
flag of the whole word, which pixels or tiles that come later may still need.
"""

from __future__ import annotations

from dataclasses import replace

from lbq_hw.compiler.tensors import Tensor, lay_out, place
from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT, Layer, Network


def overwritten(network: Network, config: CoreConfig) -> dict[str, str]:
    """By the name of a layer, the tensor that its output takes the place of."""
    tensors, found = lay_out(network, config), dict[str, str]()
    for index, layer in enumerate(network.layers[:-1]):
        for name in _sources(layer):
            source, output = tensors[name], tensors[layer.name]
            same = all(
                getattr(source, field) == getattr(output, field)
                for field in ("shape", "planes", "frames", "pitch")
            )
            alone = config.word == config.lanes and output.pitch % config.word == 0
            if same and alone and source.dies == index and layer.name not in found:
                found[layer.name] = name
    return found


def _sources(layer: Layer) -> list[str]:
    """Tensors that only an identity of this layer reads, pixel by pixel."""
    others = {path.source for path in layer.paths if not path.is_identity or path.pool}
    names = [path.source for path in layer.paths if path.is_identity and not path.pool]
    if layer.pool is not None:
        return []
    return [name for name in names if name not in others and name != INPUT]


def place_over(network: Network, config: CoreConfig) -> dict[str, Tensor]:
    """Every tensor with its base; those that follow each other in place share one."""
    over, tensors = overwritten(network, config), lay_out(network, config)
    first: dict[str, str] = {}
    for name in tensors:
        first[name] = first[over[name]] if name in over else name
    merged = {
        name: replace(tensor, dies=max(tensors[n].dies for n, f in first.items() if f == name))
        for name, tensor in tensors.items()
        if first[name] == name
    }
    placed = place(merged, config.summary)
    return {name: replace(tensors[name], base=placed[first[name]].base) for name in tensors}
