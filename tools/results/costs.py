"""The paper's two cost tables with our numbers added, and the same work in integer energy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import mean
from typing import Any

from lbq_hw.golden.counts import saved_percent
from lbq_hw.golden.energy import (
    FORMATION_PJ,
    FP32_ADD_PJ,
    FP32_MAC_PJ,
    INT8_MULTIPLY_PJ,
    INT32_ADD_PJ,
)
from lbq_hw.markdown import table
from tools.results.store import PAPERS, Results
from tools.results.text import millions, paragraph, percent

TIMESTEPS = 2  # of the paper's tables
OURS = {"lbq_with_padding": "ours, padding taps counted", "lbq": "ours, not counted"}


def name(net: Mapping[str, Any]) -> str:
    """The name of a network in a row, with its dataset if the paper's tables have another one."""
    words = [f"LBQ({net['capacity']})", f"{net['weight_bits']}-bit weights"]
    return ", ".join(words if net["dataset"] == PAPERS else [*words, net["dataset"]])


def section(results: Results) -> str | None:
    """Three tables, or None if no network was measured."""
    nets = results.nets(timesteps=TIMESTEPS)
    if not nets:
        return None
    others = any(net["dataset"] != PAPERS for net in nets)
    capacities = sorted({*map(int, results.paper["lbq"]), *(net["capacity"] for net in nets)})
    energy = ("", "", "accuracy", "FP MACs, M", "ACs, M", "formation ops, M", "mJ", "ANN / LBQ")
    saving = ("", "", "unary ACs, M", "bit-sparse ACs, M", "saved")
    integer = ("", "additions, M", "int8 products, M", "mJ", "over LBQ")
    return "\n".join(
        (
            paragraph(
                f"Means per image, T = {TIMESTEPS}.",
                f"The paper's prices are {FP32_MAC_PJ} pJ a float MAC, {FP32_ADD_PJ} pJ an",
                f"accumulation and {FORMATION_PJ} pJ a formation op; pixels are float MACs and",
                "identity shortcuts are left out. A zero that pads a convolution is never an",
                'event: "not counted" has its taps left out of the fan-out, which is what the core',
                'executes; "counted" takes one mean fan-out for all positions of a tensor.',
                "Of several runs of one network, the one that was trained longest is shown,",
                "sharpness-aware epochs counted twice.",
                f"All rows are of {PAPERS} unless they name another dataset." if others else "",
            ),
            table(energy, _energy_rows(results, nets, capacities), words=range(2)),
            paragraph("What bit planes save, counted in the same two ways:"),
            table(saving, _saving_rows(results, nets, capacities), words=range(2)),
            paragraph(
                f"At integer prices, {INT32_ADD_PJ} pJ a 32-bit addition and {INT8_MULTIPLY_PJ} pJ",
                "an 8-bit product, and for all that the core executes, bit planes of pixels and",
                "identity shortcuts included. The dense ANN has 8-bit weights and activations; a",
                "quantized ANN of N + 1 levels, run densely, costs the same. The last row of each",
                "network skips that ANN's zeros too: an estimate, which takes the activity of one",
                "timestep from the network above it.",
            ),
            table(integer, _integer_rows(nets)),
        )
    )


def _energy_rows(
    results: Results, nets: list[Mapping[str, Any]], capacities: list[int]
) -> Iterator[tuple[str, ...]]:
    ann = results.paper["ann"]
    yield "ANN", "paper", percent(ann["accuracy"]), millions(ann["fp_macs"]), "", "", _mj(ann), ""
    ours = nets[0]["energy"]["paper"]["ann"]
    anns = [run for run in results.runs.values() if run.method == "ann" and run.dataset == PAPERS]
    trained = [run.accuracy for run in anns]
    accuracy = percent(mean(trained) if trained else None)
    yield "ANN", "ours", accuracy, millions(ours["fp_macs"]), "", "", _mj(ours), ""
    for capacity in capacities:
        if theirs := results.paper["lbq"].get(str(capacity)):
            yield f"LBQ({capacity})", "paper", percent(theirs["accuracy"]), *_priced(theirs)
        for net in (net for net in nets if net["capacity"] == capacity):
            for key, label in OURS.items():
                priced = _priced(net["energy"]["paper"][key])
                yield name(net), label, percent(net["accuracy"]), *priced


def _priced(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        millions(row["fp_macs"]),
        millions(row["acs"]),
        f"{row['formation_ops'] / 1e6:.3f}",
        _mj(row),
        f"{row['ann_ratio']:.2f}",
    )


def _saving_rows(
    results: Results, nets: list[Mapping[str, Any]], capacities: list[int]
) -> Iterator[tuple[str, ...]]:
    for capacity in capacities:
        if theirs := results.paper["lbq"].get(str(capacity)):
            acs = millions(theirs["acs_unary"]), millions(theirs["acs"])
            yield f"LBQ({capacity})", "paper", *acs, f"{theirs['saved']:.2f} %"
        for net in (net for net in nets if net["capacity"] == capacity):
            for key, label in OURS.items():
                row = net["energy"]["paper"][key]
                acs = millions(row["acs_unary"]), millions(row["acs"])
                saved = saved_percent(row["acs_unary"], row["acs"])
                yield name(net), label, *acs, f"{saved:.2f} %"


def _integer_rows(nets: list[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for net in nets:
        prices = net["energy"]["integer"]
        lbq = prices["lbq"]
        yield name(net), millions(lbq["adds"]), "", _mj(lbq), ""
        for key, label in (
            ("ann_int8", "ANN, int8, dense"),
            ("quantized_ann_zero_skipping_estimate", "quantized ANN, zeros skipped (estimate)"),
        ):
            row = prices[key]
            macs = millions(row["macs"])
            yield label, macs, macs, _mj(row), f"{row['mj'] / lbq['mj']:.2f}"


def _mj(row: Mapping[str, Any]) -> str:
    return f"{row['mj']:.2f}" if row["mj"] >= 0.5 else f"{row['mj']:.3f}"
