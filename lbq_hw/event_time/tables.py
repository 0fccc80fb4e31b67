"""The tables of docs/event-time.md, from the output of ``python -m lbq_hw.event_time --json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbq_hw.markdown import table

WALKERS = {"runs": "today's", "map": "map"}


def markdown(facts: Mapping[str, Any]) -> str:
    """Visits by layer, cycles by way, memory by way."""
    return "\n".join((layers(facts), ways(facts), memory(facts)))


def layers(facts: Mapping[str, Any]) -> str:
    """The table of layers: means and maxima per timestep."""
    heads = (
        *("layer", "output", "positions", "rests", "events", "most", "visited", "most"),
        *("hot", "owed leaks", "membrane bits"),
    )
    return table(heads, [_layer(layer) for layer in facts["layers"]], words=(0, 1, 3))


def _layer(layer: Mapping[str, Any]) -> tuple[object, ...]:
    events, visited = layer["events"], layer["visited"]
    return (
        layer["name"],
        "x".join(map(str, layer["shape"])),
        layer["positions"],
        "yes" if layer["rests"] else "no",
        f"{events['mean']:.1f}",
        events["most"],
        f"{visited['mean']:.1f}",
        visited["most"],
        f"{layer['hot']['mean']:.1f}",
        f"{layer['owed']['mean']:.1f}",
        layer["membrane_bits"],
    )


def ways(facts: Mapping[str, Any]) -> str:
    """Cycles of a recording and of one block of timesteps, mean and maximum; means by layer."""
    names = [layer["name"] for layer in facts["layers"]]
    heads = (
        *("walker", "board", "lanes", "block", "recordings", "cycles of one", "most"),
        *("of a block", "most"),
        *names,
    )
    return table(heads, [_way(way) for way in facts["ways"]], words=(0, 1))


def _way(way: Mapping[str, Any]) -> tuple[object, ...]:
    numbers = (*way["cycles"].values(), *way["pass"].values(), *way["layers"])
    return (
        WALKERS[way["walker"]],
        way["board"],
        way["lanes"],
        way["block"],
        way["recordings"],
        *(f"{round(number):,}" for number in numbers),
    )


def memory(facts: Mapping[str, Any]) -> str:
    """The table of memory: kilobits by kind."""
    kinds = list(facts["ways"][0]["memory"])
    rows = [
        (
            WALKERS[way["walker"]],
            way["board"],
            way["block"],
            *(f"{way['memory'][kind] / 1000:.1f}" for kind in kinds),
            f"{sum(way['memory'].values()) / 1000:.0f}",
        )
        for way in facts["ways"]
    ]
    return table(("walker", "board", "block", *kinds, "all"), rows, words=(0, 1))
