"""Chooses the scales of float weights on given inputs, so that the fewest levels differ.

`train.deploy.rounding` sees only the weights, and chooses for each channel the scale with the least
squared error. But only inputs show which of these errors moves a membrane across its threshold. So
several sizes of each scale are tried, and each channel keeps the scale whose levels differ least
from the model's. As in `train.deploy.agreement`, both get equal inputs: the levels of the layers
that are calibrated already. The scale of rounding is among the candidates and wins a tie, so on the
given inputs no channel gets worse. A readout has one scale for all channels, chosen by its classes.

Weights that are exact already, or were trained quantized, keep their codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, fx

from lbq_hw import golden
from lbq_hw.network import INPUT, Layer, Network
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy.agreement import Forced, reads_values, walk
from lbq_hw.train.deploy.rounding import Quantized, learned_bits, rescaled
from lbq_hw.train.graph import Analysis, Population

FACTORS = tuple(sorted((n / 20 for n in range(10, 31)), key=lambda factor: abs(factor - 1)))
"""Factors on rounding's scale, in order of trial: 1 first, then the factors nearest to it."""


def calibrated(
    found: Analysis,
    root: fx.GraphModule,
    spec: InputSpec,
    network: Network,
    quantized: Mapping[str, Quantized],
    raw: NDArray[np.uint8],
    build: Callable[[Population, Quantized], Layer],
) -> dict[str, Quantized]:
    """The populations of a module, by name, with scales chosen on the inputs `raw`.

    `network` was made from `quantized`; `build` makes one layer from a population.
    """
    made = dict(quantized)
    traces = {INPUT: golden.run(network, raw, keep="levels").traces[INPUT]}

    def answer(population: Population, current: Tensor, output: Tensor | None) -> golden.Trace:
        def run(tried: Quantized) -> Forced:
            layer = build(population, tried)
            trace = golden.run_layer(network, layer, traces)
            return Forced(
                layer=layer,
                population=population,
                current=current,
                output=output,
                trace=trace,
                values=reads_values(network),
            )

        old = quantized[population.name]
        if _is_float(population, old, network.weight_bits):

            def scaled(factor: float | NDArray[np.float64]) -> Quantized:
                return rescaled(population, spec, network.weight_bits, old, factor)

            counts = [_by_channel(run(scaled(factor))) for factor in FACTORS]
            best = np.array(FACTORS)[np.argmin(counts, axis=0)]
            made[population.name] = scaled(best)
        traces[population.name] = run(made[population.name]).trace
        return traces[population.name]

    walk(found, root, spec, raw, answer)
    return made


def _is_float(population: Population, quantized: Quantized, bits: int) -> bool:
    """Whether the population's weights were rounded from floats."""
    learned = learned_bits(population)
    return (learned is None or learned > bits) and any(quantized.error)


def _by_channel(layer: Forced) -> NDArray[np.int64]:
    """Number of differing levels per channel; for a readout, of differing classes."""
    differs, channels = layer.differs, layer.population.shape[0]
    if layer.output is None:
        return np.full(channels, differs.sum())
    return differs.reshape(len(differs), channels, -1).sum(axis=(0, 2))
