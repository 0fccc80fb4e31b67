"""Scales of float weights, chosen on given inputs: those with which the fewest levels differ.

`train.deploy.rounding` knows the weights alone and takes the scale of each channel with the least
squared error. Which of these errors moves a membrane across its threshold only inputs tell. So each
scale is tried again in a few sizes, and each channel keeps the one whose levels differ least from
the model's, as `train.deploy.agreement` compares them: on equal inputs, which are the levels of the
layers that were calibrated before. The scale of rounding is among them and wins a tie: on the
given inputs, no channel differs more than it would with that scale. A readout has one scale for all
channels, judged by its classes.

Weights that are exact as they are, or were trained quantized, keep their codes.
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
"""What rounding's scale is multiplied by, in order of trial: 1 first, then the nearest to it."""


def calibrated(
    found: Analysis,
    root: fx.GraphModule,
    spec: InputSpec,
    network: Network,
    quantized: Mapping[str, Quantized],
    raw: NDArray[np.uint8],
    build: Callable[[Population, Quantized], Layer],
) -> dict[str, Quantized]:
    """The populations of a module, by name, in the scales that are chosen on the inputs `raw`.

    `network` is made of `quantized`, and `build` makes a layer of it.
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
    """Whether its weights were rounded."""
    learned = learned_bits(population)
    return (learned is None or learned > bits) and any(quantized.error)


def _by_channel(layer: Forced) -> NDArray[np.int64]:
    """How many levels differ in each channel; of a readout, in all of them how many classes do."""
    differs, channels = layer.differs, layer.population.shape[0]
    if layer.output is None:
        return np.full(channels, differs.sum())
    return differs.reshape(len(differs), channels, -1).sum(axis=(0, 2))
