"""The most cycles that a program can take, whatever its input."""

from __future__ import annotations

from lbq_hw import isa
from lbq_hw.compiler import Program
from lbq_hw.cycles.stages import NeuronTiming

LATENCY = 64
"""Cycles from the walker through all stages to the neuron units, and a few more."""
WORD = 4
"""Cycles that a request and one plane word of it take in the scanner, if nothing overlaps."""


def most_cycles(program: Program) -> tuple[int, ...]:
    """The most cycles of every layer, as if run alone; a program takes at most their sum.

    Every bit that can be read is taken as set, and every stage waits for the one before it: a
    bound for a core that works, several times what an input really takes.
    """
    config = program.config
    timing = NeuronTiming.of(config)
    paths, segments, runs = (program.table(name) for name in ("paths", "segments", "runs"))
    found: list[int] = []
    for layer in program.table("layers"):
        here = paths[layer["path_first"] : layer["path_last"] + 1]
        times, planes = layer["time_last"] + 1, layer["planes_last"] + 1
        step = LATENCY + len(here) + 2  # the walker's visit
        step += times * max(timing.groups, timing.loop, planes)  # all of them if it is static
        exponents = 0
        for segment in segments[layer["segment_first"] : layer["segment_last"] + 1]:
            path = here[segment["path"]]
            exponents = max(exponents, segment["exponent"])
            for run in runs[path["run_first"] : path["run_last"] + 1]:
                rows, bits = run["rows_last"] + 1, run["length_last"] + 1
                words = rows + bits // config.word + 1
                step += 1 + WORD * words + (1 if path["identity"] else rows * bits)
        loops = ("rows", "columns", "tiles", "window_rows", "window_columns")
        steps = 1 if layer["static"] else times
        for loop in loops:
            steps *= layer[f"{loop}_last"] + 1
        records = isa.LAYER.slices(config) + len(here) * isa.PATH.slices(config)
        start = records + planes + times
        found.append(start + steps * (step + exponents) + timing.groups + timing.depth + LATENCY)
    return tuple(found)
