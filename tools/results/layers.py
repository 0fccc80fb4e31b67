"""How the layers of a measured network use their levels: a figure and two tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbq_hw.markdown import table
from tools.results import costs
from tools.results.store import PAPERS, Results
from tools.results.text import paragraph

FIGURE = "layers.svg"

_SUMMARY = {
    "gamma_min": ("smallest step gamma", 3),
    "gamma_max": ("largest step gamma", 3),
    "gamma_cv": ("coefficient of variation of gamma", 2),
    "active_ratio": ("active ratio, mean of layers", 3),
    "entropy": ("normalized conditional entropy, mean of layers", 3),
    "p_first_level": ("P(1), mean of layers", 3),
}


def described(results: Results) -> Mapping[str, Any] | None:
    """The network of the figure: the paper's dataset, T and N, the most weight bits."""
    return _widest(results).get(PAPERS)


def _widest(results: Results) -> dict[str, Mapping[str, Any]]:
    """For each dataset, the network with the paper's T and N and the most weight bits."""
    found: dict[str, Mapping[str, Any]] = {}
    for net in results.nets(timesteps=costs.TIMESTEPS, capacity=5):
        if "levels" in net:
            found.setdefault(net["dataset"], net)
    return found


def facts(net: Mapping[str, Any]) -> dict[str, Any]:
    """The data for `train.figures`."""
    layers = [layer for layer in net["layers"] if "distribution" in layer]
    return {"layers": layers, "summary": net["levels"]}


def section(results: Results) -> str | None:
    """The figure and its tables; None if no such network was measured."""
    net = described(results)
    if net is None:
        return None
    layers = facts(net)["layers"]
    columns = {"ours": net["levels"], "paper": results.paper["layers"]}
    for dataset, other in _widest(results).items():
        if dataset != PAPERS:
            columns[f"ours, {dataset}"] = other["levels"]
    summary = [
        (label, *(f"{levels[key]:.{digits}f}" for levels in columns.values()))
        for key, (label, digits) in _SUMMARY.items()
    ]
    tails = all(layer.get("lambda") is not None for layer in layers)
    headings = ["layer", "gamma", *(["lambda"] if tails else []), "active", "entropy"]
    headings += [f"P({k})" for k in range(1, net["capacity"] + 1)]
    headings += ["popcount", "bit-sparse ACs in, M"]
    rows = (_row(layer, tails=tails) for layer in layers)
    return "\n".join(
        (
            paragraph(
                f"{costs.name(net)}, T = {net['timesteps']}, counted from its integers on",
                f"{net['images']:,} test images. P(k) is the share of level k among active",
                "neurons, popcount the mean of set bits a neuron and timestep; ACs are those on",
                "the layer's own inputs, padding taps not counted.",
                "" if tails else _tail_range(net, results),
            ),
            f"![gamma by layer; entropy against active ratio; levels by layer]({FIGURE})\n",
            table(("", *columns), summary),
            table(headings, rows),
        )
    )


def _tail_range(net: Mapping[str, Any], results: Results) -> str:
    """A sentence on lambda, from the network's run, if it was not measured by layer."""
    run = next(results.run_of(name) for name, other in results.measured.items() if other is net)
    ranges = results.runs[run].ranges if run else {}
    if "lambda_min" not in ranges:
        return ""
    low, high = ranges["lambda_min"], ranges["lambda_max"]
    return f"Lambda, the tail of the surrogate, ended between {low:.3f} and {high:.3f}."


def _row(layer: Mapping[str, Any], *, tails: bool) -> tuple[str, ...]:
    return (
        layer["name"],
        f"{layer['gamma']:.4f}",
        *((f"{layer['lambda']:.3f}",) if tails else ()),
        f"{layer['active_ratio']:.3f}",
        f"{layer['entropy']:.3f}",
        *(f"{share:.3f}" for share in layer["distribution"]),
        f"{layer['popcount']:.3f}",
        f"{layer['acs_bit_sparse'] / 1e6:.2f}",
    )
