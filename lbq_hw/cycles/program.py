"""The cycles of a whole program: its layers, or its passes and their waits for the tape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lbq_hw.chips.timing import ReaderTiming, default_timing
from lbq_hw.cycles.model import LayerCycles, layer_cycles
from lbq_hw.cycles.schedule import Item, Schedule
from lbq_hw.cycles.work import LayerWork, Levels, Memory
from lbq_hw.isa import tape
from lbq_hw.isa.contents import Contents, replay

if TYPE_CHECKING:
    from lbq_hw.compiler import Program


def predict(
    program: Program,
    raw: NDArray[np.uint8],
    levels: Levels,
    *,
    timing: ReaderTiming | None = None,
) -> tuple[LayerCycles, ...]:
    """The cycles of every layer for one raw image ``(C, H, W)``, or its frames ``(T, C, H, W)``.

    `levels`: the output of every layer of neurons, ``(T, C, H, W)`` by its name. `timing`: of the
    external memory; the default depends on its width.
    """
    alone = pass_cycles(program, raw, levels)
    waits, end = [0] * len(alone), 0
    if program.config.external:
        timing = timing or default_timing(program.config.external)
        waits, end = wait_cycles(program, [one.cycles for one in alone], timing)
    found: dict[int, LayerCycles] = {}
    for cut, one, wait in zip(program.passes, alone, waits, strict=True):
        made = replace(one.later(wait), wait_cycles=wait)
        found[cut.layer] = found[cut.layer] + made if cut.layer in found else made
    *layers, last = found.values()
    return *layers, last.later(end)


def pass_cycles(
    program: Program, raw: NDArray[np.uint8], levels: Levels
) -> tuple[LayerCycles, ...]:
    """The cycles of every pass from its start to its end, whenever it begins."""
    config = program.config
    found: list[LayerCycles] = []
    layer, memory = -1, None
    contents = Contents(config)
    for cut, records in zip(program.passes, replay(program.tape, contents), strict=True):
        if memory is None or layer != cut.layer:
            layer, memory = cut.layer, Memory(program, raw, levels, cut.layer)
        info = program.info[layer]
        channels = info.shape[0] - cut.tile * config.lanes
        work = LayerWork(config, records, memory, channels, continued=cut.first > 0)
        found.append(layer_cycles(info.name, work))
    return tuple(found)


def wait_cycles(
    program: Program, cycles: Sequence[int], timing: ReaderTiming
) -> tuple[list[int], int]:
    """Cycles in which each pass waited for the tape, and the cycles from the end of the last pass
    to END.

    `cycles` are the cycles of the passes.
    """
    schedule, numbers, waits = Schedule(timing), iter(cycles), list[int]()
    schedule.write(Item(slices=len(tape.head(program.config, 0).payload)))
    for item in tape.decode(program.config, program.tape):
        if item.address == tape.PASS:
            before = schedule.waited
            schedule.run(next(numbers))
            waits.append(schedule.waited - before)
        else:
            schedule.write(Item(slices=len(item.payload), after=item.after))
    return waits, schedule.finish() - schedule.ends[-1]
