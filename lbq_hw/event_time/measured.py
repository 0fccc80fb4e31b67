"""Visits, cycles and memory of several recordings, as one JSON-able object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import file
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.event_time.memory import memory_bits
from lbq_hw.event_time.visits import LayerVisits, rests, visits
from lbq_hw.event_time.ways import Wiring, map_cycles, walker_cycles
from lbq_hw.network import Network
from lbq_hw.numeric import Integers

WIRINGS = {
    "ulx3s": (32, Wiring()),
    "tang-nano-20k": (16, Wiring()),
    "icebreaker": (16, Wiring(event_cycles=2, membranes=1)),
}
"""Lanes and memories by board. Block RAMs read a weight row and a group of membranes per cycle. An
iCE40 UP5K has two single-port RAMs for the weights and two for the membranes; a pair reads 32 bits
per cycle: eight weights, or one membrane."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to execute a recording, and a function for its cycles by block and layer; `chosen` if
    the plan is based on it.
    """

    walker: str
    board: str
    block: int
    chosen: bool
    cycles: Callable[[NDArray[np.uint8], list[LayerVisits]], Integers]


def measure(
    network: Network,
    recordings: NDArray[np.uint8],
    *,
    others: int | None = None,
    go_on: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """All numbers of some recordings ``(n, T, C, H, W)``; `go_on` is called after each recording.

    `others`: the number of recordings for which the ways that are not `chosen` are computed too,
    since these take longest.
    """
    ways = list(_ways(network))
    counts: list[list[dict[str, Any]]] = []
    cycles: list[list[Integers]] = [[] for _ in ways]
    for number, raw in enumerate(recordings):
        found = visits(network, raw)
        counts.append([_counts(one) for one in found])
        for way, seen in zip(ways, cycles, strict=True):
            if way.chosen or others is None or number < others:
                seen.append(way.cycles(raw, found))
        go_on()
    layers = [_layer(network, index, one) for index, one in enumerate(zip(*counts, strict=True))]
    bits = max(layer["membrane_bits"] for layer in layers)
    return {
        "model": network.name,
        "digest": file.digest(network),
        "recordings": len(recordings),
        "timesteps": network.timesteps,
        "layers": layers,
        "ways": [_summary(*one, bits, network) for one in zip(ways, cycles, strict=True)],
    }


def _ways(network: Network) -> list[Way]:
    lanes, _ = WIRINGS["ulx3s"]
    config = smallest_for(network, lanes=lanes)
    program = compile_network(network, config)
    whole = network.timesteps
    ways = [
        Way(
            walker="runs",
            board="ulx3s",
            block=block,
            chosen=False,
            cycles=lambda raw, found, block=block: walker_cycles(program, raw, found, block=block),
        )
        for block in (whole, 1)
    ]
    for board, (lanes, wiring) in WIRINGS.items():
        core = smallest_for(network, lanes=lanes)
        for block in (16, 1) if board == "ulx3s" and whole > 16 else (1,):
            ways.append(
                Way(
                    walker="map",
                    board=board,
                    block=block,
                    chosen=block == 1 and board != "tang-nano-20k",
                    cycles=lambda _, found, core=core, block=block, wiring=wiring: map_cycles(
                        core, found, block=block, wiring=wiring
                    ),
                )
            )
    return ways


def _counts(one: LayerVisits) -> dict[str, Any]:
    """Sums over the positions of each timestep; the least and the largest membrane."""
    return {
        name: getattr(one, name).sum(axis=(1, 2)) for name in ("events", "visited", "hot", "owed")
    } | {"membranes": one.membranes}


def _layer(network: Network, index: int, seen: Sequence[dict[str, Any]]) -> dict[str, Any]:
    layer = network.layers[index]
    low, high = (f(one["membranes"][i] for one in seen) for i, f in enumerate((min, max)))
    facts: dict[str, Any] = {
        "name": layer.name,
        "shape": list(layer.shape),
        "positions": layer.shape[1] * layer.shape[2],
        "rests": rests(layer),
        "membrane_bits": max(int(high).bit_length(), int(~low).bit_length()) + 1,
    }
    for name in ("events", "visited", "hot", "owed"):
        steps = np.concatenate([one[name] for one in seen])
        facts[name] = {"mean": float(steps.mean()), "most": int(steps.max())}
    return facts


def _summary(
    way: Way, seen: Sequence[Integers], membrane_bits: int, network: Network
) -> dict[str, Any]:
    lanes, _ = WIRINGS[way.board]
    memory = memory_bits(network, lanes=lanes, block=way.block, membrane_bits=membrane_bits)
    wholes = [int(one.sum()) for one in seen]
    blocks = np.concatenate([one.sum(axis=1) for one in seen])
    layers = np.sum([one.sum(axis=0) for one in seen], axis=0) / len(seen)
    return {
        "walker": way.walker,
        "board": way.board,
        "lanes": lanes,
        "block": way.block,
        "recordings": len(seen),
        "cycles": {"mean": float(np.mean(wholes)), "most": max(wholes)},
        "pass": {"mean": float(blocks.mean()), "most": int(blocks.max())},
        "layers": layers.tolist(),
        "memory": asdict(memory),
    }
