"""The share of set bits in a network: counted, taken from an evaluation, or assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lbq_hw import file, golden
from lbq_hw.compiler.passes.demand import ASSUMED
from lbq_hw.golden.counts import Counter
from lbq_hw.network import INPUT, Network

Source = Literal["images", "evaluation", "assumed"]


@dataclass(frozen=True, kw_only=True)
class Activity:
    """Bit-sparse accumulations per image of each layer, in order, and their source.

    `share` is their fraction of the accumulations with every bit set, and `shares` the same for
    each layer; 0 for a layer that only passes spikes on, without accumulations.
    """

    accumulations: tuple[float, ...]
    share: float
    shares: tuple[float, ...]
    source: Source

    @property
    def remark(self) -> str:
        """The remark for an estimate from this activity; empty if images were counted."""
        percent = f"{100 * self.share:g} %"
        return {
            "images": "",
            "evaluation": "with the activity of the zoo's evaluation",
            "assumed": f"if {percent} of the bits are set: --raw FILE or --data DIR counts them",
        }[self.source]


def activity(
    network: Network,
    *,
    images: NDArray[np.uint8] | None = None,
    evaluation: Mapping[str, Any] | None = None,
) -> Activity:
    """Counted by the golden model on raw images; else from what ``lbq_hw.evaluate --json`` printed
    of this very network; else assumed.
    """
    most = _most(network)
    if images is not None:
        counter = Counter(network)
        golden.run(network, images, observe=counter)
        found = [layer.work.bit_sparse for layer in counter.counts().layers]
        return _known(found, most, "images")
    if evaluation is not None and evaluation["digest"] == file.digest(network):
        by_name = {layer["name"]: layer["acs_bit_sparse"] for layer in evaluation["layers"]}
        return _known([by_name[layer.name] for layer in network.layers], most, "evaluation")
    assumed = tuple(ASSUMED * number for number in most)
    shares = (ASSUMED,) * len(most)
    return Activity(accumulations=assumed, share=ASSUMED, shares=shares, source="assumed")


def _known(found: list[float], most: list[float], source: Source) -> Activity:
    return Activity(
        accumulations=tuple(found),
        share=sum(found) / sum(most),
        shares=tuple(
            some / most_ if most_ else 0.0 for some, most_ in zip(found, most, strict=True)
        ),
        source=source,
    )


def _most(network: Network) -> list[float]:
    """Accumulations of each layer if every bit of every plane were set."""
    static, counter = network.input.static, Counter(network)
    frames = () if static else (network.timesteps,)
    golden.run(network, np.zeros((1, *frames, *network.input.shape), np.uint8), observe=counter)
    planes = {INPUT: network.input.bits}
    totals = []
    for layer, counted in zip(network.layers, counter.counts().layers, strict=True):
        totals.append(float(sum(planes[p.source] * p.macs * p.executions for p in counted.paths)))
        planes[layer.name] = layer.capacity.bit_length()
    return totals
