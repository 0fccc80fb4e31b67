"""The most cycles that a program can take, whatever its input."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING

from lbq_hw import isa
from lbq_hw.chips.timing import ReaderTiming, default_timing
from lbq_hw.config import CoreConfig
from lbq_hw.cycles.schedule import EFFECT, GATE
from lbq_hw.cycles.stages import NeuronTiming
from lbq_hw.isa import tape
from lbq_hw.isa.contents import Contents, LayerRecords, replay

if TYPE_CHECKING:
    from lbq_hw.compiler import Program

LATENCY = 64
"""Cycles from the walker through all stages to the neuron units, and a few more."""
WORD = 4
"""Cycles of a request and of one plane word in the scanner, if nothing overlaps."""


def most_cycles(program: Program, *, timing: ReaderTiming | None = None) -> tuple[int, ...]:
    """Upper bound on the cycles of every layer, as if it ran alone; a program takes at most their
    sum.

    The bound assumes that every bit is set and that no two stages overlap, so it is several times
    the cycles of a real input. With external memory it assumes that passes and tape never overlap.
    If the program has no list of passes, all passes count for the last layer.
    """
    config = program.config
    found = [0] * len(program.info)
    contents = Contents(config)
    layers = [cut.layer for cut in program.passes] or repeat(len(found) - 1)
    for layer, records in zip(layers, replay(program.tape, contents), strict=bool(program.passes)):
        found[layer] += _most(config, records)
    if not config.external:
        return tuple(found)
    timing = timing or default_timing(config.external)
    for number, slices, items in _shares(program):
        found[number] += _reading(timing, slices, items)
    # Refreshes come at their regular interval, and a few may have waited for the end of a page.
    late = timing.refresh * (2 + _page(timing) // timing.interval)
    rest = timing.interval - timing.refresh
    return tuple(-(-(cycles + late) * timing.interval // rest) for cycles in found)


def _shares(program: Program) -> Iterator[tuple[int, int, int]]:
    """Slices and items of the tape up to each PASS, with the number of its layer; END's last."""
    slices, items, done = len(tape.head(program.config, 0).payload) + tape.ITEM_SLICES, 1, 0
    for item in tape.decode(program.config, program.tape):
        slices, items = slices + len(item.payload) + tape.ITEM_SLICES, items + 1
        if item.address == tape.PASS:
            layer = program.passes[done].layer if program.passes else len(program.info) - 1
            yield layer, slices, items
            slices, items, done = 0, 0, done + 1
    yield len(program.info) - 1, slices + tape.ITEM_SLICES, items + 1


def _reading(timing: ReaderTiming, slices: int, items: int) -> int:
    """Bound on the cycles of items, without refreshes: no word is taken while a page is read."""
    words = slices * timing.words_per_slice
    pages = -(-words // timing.page_words) + 1
    return words + items * (GATE + EFFECT) + pages * _page(timing)


def _page(timing: ReaderTiming) -> int:
    return timing.first + timing.page_words + timing.rest


def _most(config: CoreConfig, records: LayerRecords) -> int:
    """The most cycles of one layer or pass."""
    timing, layer = NeuronTiming.of(config), records.layer
    times, planes = layer["time_last"] + 1, layer["planes_last"] + 1
    step = LATENCY + len(records.paths) + 2  # the walker's visit
    step += times * max(timing.groups, timing.loop, planes)  # all of them if it is static
    exponents = 0
    for segment in records.segments:
        path = records.paths[segment["path"]]
        exponents = max(exponents, segment["exponent"])
        for run in records.runs[segment["path"]]:
            bits = run["length_last"] + 1
            words = bits // config.word + 2
            step += 1 + WORD * words + (1 if path["identity"] else bits)
    loops = ("rows", "columns", "tiles", "window_rows", "window_columns")
    steps = 1 if layer["static"] else times
    for loop in loops:
        steps *= layer[f"{loop}_last"] + 1
    start = isa.LAYER.slices(config) + len(records.paths) * isa.PATH.slices(config) + planes + times
    return start + steps * (step + exponents) + timing.groups + timing.depth + LATENCY
