"""Prices: the paper's tables from their own counts, and a report worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lbq_hw import golden
from lbq_hw.golden import counts, energy
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path

# The paper rounds its MAC counts but not its ratios; these are the counts of its ResNet-20.
ANN_MACS = 2_587_235_328
STEM_MACS = 3_538_944

# method: millions of synaptic ACs, of formation ops; energy (mJ); energy ratio to the ANN
ENERGY_TABLE = {
    "Binary": (79.59, 0.0, "0.09", "135.38"),
    "Ternary": (1693.84, 0.0, "1.54", "7.72"),
    "LBQ (2)": (542.72, 0.385, "0.50", "23.58"),
    "LBQ (5)": (945.69, 0.695, "0.87", "13.72"),
    "LBQ (10)": (1203.80, 0.938, "1.10", "10.82"),
    "LBQ (20)": (1163.20, 0.983, "1.06", "11.19"),
}

# method: millions of unary-equivalent ACs, of bit-sparse ACs; reduction in percent
ACCUMULATION_TABLE = {
    "Binary": (79.59, 79.59, "0.00"),
    "Ternary": (1693.84, 1693.84, "0.00"),
    "LBQ (2)": (727.58, 542.72, "25.41"),
    "LBQ (5)": (1589.90, 945.69, "40.52"),
    "LBQ (10)": (2577.73, 1203.80, "53.30"),
    "LBQ (20)": (2828.76, 1163.20, "58.88"),
}


def test_the_papers_ann_energy() -> None:
    assert f"{ANN_MACS / 1e6:.2f}" == "2587.24"
    assert f"{energy.paper_mj(fp_macs=ANN_MACS):.2f}" == "11.90"


@pytest.mark.parametrize("method", ENERGY_TABLE)
def test_the_papers_energies_and_ratios(method: str) -> None:
    acs, formation_ops, mj, ratio = ENERGY_TABLE[method]
    assert f"{STEM_MACS / 1e6:.2f}" == "3.54"
    value = energy.paper_mj(fp_macs=STEM_MACS, acs=acs * 1e6, formation_ops=formation_ops * 1e6)
    assert f"{value:.2f}" == mj
    assert f"{energy.paper_mj(fp_macs=ANN_MACS) / value:.2f}" == ratio


@pytest.mark.parametrize("method", ACCUMULATION_TABLE)
def test_the_papers_reductions(method: str) -> None:
    unary, bit_sparse, reduction = ACCUMULATION_TABLE[method]
    assert f"{counts.saved_percent(unary * 1e6, bit_sparse * 1e6):.2f}" == reduction


def test_a_report_by_hand() -> None:
    """One pixel of 3 feeds a neuron, level 3 of 7 twice, which feeds 4 logits."""
    neuron = Neuron(capacity=7, theta=np.array([1]), reset=np.array([0]), decay=0, decay_bits=0)
    hidden = Layer(
        name="hidden",
        shape=(1, 1, 1),
        paths=(Path(source=INPUT, weight=np.ones((1, 1, 1, 1), np.int64)),),
        bias=np.array([0]),
        fraction_bits=0,
        neuron=neuron,
    )
    logits = Layer(
        name="logits",
        shape=(4, 1, 1),
        paths=(Path(source="hidden", weight=np.ones((4, 1, 1, 1), np.int64)),),
        bias=np.zeros(4, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    network = Network(
        name="hand",
        input=Input(shape=(1, 1, 1), static=True, bits=8),
        timesteps=2,
        weight_bits=8,
        layers=(hidden, logits),
    )
    counter = counts.Counter(network)
    golden.run(network, np.full((1, 1, 1, 1), 3, np.uint8), observe=counter)
    report = energy.report(counter.counts())
    lbq = report["paper"]["lbq"]
    assert (lbq["fp_macs"], lbq["acs"], lbq["acs_unary"], lbq["formation_ops"]) == (1, 16, 24, 4)
    assert lbq["mj"] == pytest.approx(1e-9 * (4.6 + 0.9 * 16 + 0.1 * 4), rel=1e-12)
    assert report["paper"]["lbq_with_padding"] == lbq
    assert report["paper"]["ann"] == {"fp_macs": 5, "mj": pytest.approx(1e-9 * 4.6 * 5)}
    assert lbq["ann_ratio"] == report["paper"]["ann"]["mj"] / lbq["mj"]
    integer = report["integer"]
    assert integer["lbq"] == {"adds": 2 + 16 + 4, "mj": pytest.approx(1e-9 * 0.1 * 22)}
    dense = {"macs": 5, "mj": pytest.approx(1e-9 * 0.3 * 5)}
    assert integer["ann_int8"] == integer["quantized_ann"] == dense
    assert (
        integer["quantized_ann_zero_skipping_estimate"] == dense
    )  # neither pixel nor level is ever 0
