"""Integer network + CoreConfig -> program; ``python -m lbq_hw.compiler --help`` prints one.

Stages, one per file: `patches` gathers fields of view of the input; `tensors` lays tensors out and
places them; `lower` turns layers into paths, segments and runs (`windows`) and into weight rows
(`weights`); `needs` proves widths and finds everything the core lacks; `tables` encodes, with
parameters from `neurons`.

For a core with external memory, `places` lets outputs take the place of what they bypass, `blocks`
cuts weight rows into what is fetched at once, `passes` cuts layers into passes and finds places
for all that they need, and `emit` makes the tape.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbq_hw.chips.timing import ReaderTiming, default_timing
from lbq_hw.compiler.draft import CompileError, Draft, draft
from lbq_hw.compiler.emit import items
from lbq_hw.compiler.lower import LoweredLayer
from lbq_hw.compiler.passes import PlanError, plan
from lbq_hw.compiler.passes.blocks import Levels, pass_room
from lbq_hw.compiler.program import LayerInfo, PassInfo, Program
from lbq_hw.compiler.smallest import smallest_for
from lbq_hw.compiler.tables import Tables
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.config import CoreConfig
from lbq_hw.isa import tape
from lbq_hw.network import Bounds, Network

__all__ = [
    "CompileError",
    "LayerInfo",
    "PassInfo",
    "Program",
    "Tensor",
    "compile_network",
    "program_of_tape",
    "smallest_for",
]


def compile_network(
    network: Network,
    config: CoreConfig,
    *,
    levels: Levels | None = None,
    timing: ReaderTiming | None = None,
) -> Program:
    """Compile, or raise one `CompileError` with every reason why it cannot be.

    For a core with external memory the program is a tape. `levels` of a sample, of every tensor by
    its name, ``(frames, C, H, W)``, and the `timing` of the memory only serve to cut layers well.
    """
    drafted = draft(network, config, levels)
    if violations := drafted.violations(config):
        raise CompileError(network.name, config, violations, drafted.changes(config))
    if config.external:
        return _on_tape(network, config, drafted, timing or default_timing(config.external))
    tables = Tables(config)
    info = []
    for lowered, bounds in zip(drafted.layers, drafted.bounds, strict=True):
        info.append(_info(lowered, bounds, tables.weight_rows))
        tables.add(lowered, drafted.tensors, network.timesteps)
    return Program(
        name=network.name,
        config=config,
        timesteps=network.timesteps,
        layers=tuple(tables.layers),
        paths=tuple(tables.paths),
        segments=tuple(tables.segments),
        runs=tuple(tables.runs),
        weights=np.concatenate([lowered.weights for lowered in drafted.layers]),
        params=tuple(tables.params),
        input=network.input,
        patches=drafted.patches,
        tensors=drafted.tensors,
        info=tuple(info),
    )


def program_of_tape(network: Network, config: CoreConfig, made: bytes) -> Program:
    """The program of a network whose tape was `made` before: no layer is cut again.

    It does not tell what the passes are. CompileError as in `compile_network`.
    """
    drafted = draft(network, config)
    if violations := drafted.violations(config):
        raise CompileError(network.name, config, violations, drafted.changes(config))
    return _with_tape(network, config, drafted, made)


def _info(lowered: LoweredLayer, bounds: Bounds | None, weight_first: int) -> LayerInfo:
    assert bounds is not None  # a failed proof is a violation
    return LayerInfo(
        name=lowered.layer.name,
        shape=lowered.layer.shape,
        output_shape=lowered.layer.output_shape,
        sources=tuple(path.source for path in lowered.layer.paths),
        weight_first=weight_first,
        weight_rows=len(lowered.weights),
        acc_bits=bounds.acc_bits,
        membrane_bits=bounds.membrane_bits,
    )


def _on_tape(network: Network, config: CoreConfig, drafted: Draft, timing: ReaderTiming) -> Program:
    """The program as passes: everything that the core reads is on the tape."""
    try:
        planned = plan(drafted.demands, config, pass_room(config), timing)
    except PlanError as error:
        raise CompileError(network.name, config, (str(error),), error.changes) from None
    numbers = {lowered.layer.name: index for index, lowered in enumerate(drafted.layers)}
    made = tape.encode(
        config,
        items(planned.passes, drafted.layers, drafted.tensors, network.timesteps, config),
        page_bytes=timing.page_words * timing.word_bits // 8,
    )
    passes = tuple(
        PassInfo(
            layer=numbers[placed.cut.layer],
            tile=placed.cut.tile,
            first=placed.cut.band[0],
            end=placed.cut.band[1],
        )
        for placed in planned.passes
    )
    return replace(_with_tape(network, config, drafted, made), passes=passes, budget=planned.layers)


def _with_tape(network: Network, config: CoreConfig, drafted: Draft, made: bytes) -> Program:
    return Program(
        name=network.name,
        config=config,
        timesteps=network.timesteps,
        layers=(),
        paths=(),
        segments=(),
        runs=(),
        weights=np.zeros((0, config.lanes), np.int64),
        params=(),
        input=network.input,
        patches=drafted.patches,
        tensors=drafted.tensors,
        info=tuple(
            _info(lowered, bounds, 0)
            for lowered, bounds in zip(drafted.layers, drafted.bounds, strict=True)
        ),
        tape=made,
    )
