"""Integer network + CoreConfig -> program; ``python -m lbq_hw.compiler --help`` prints one.

Passes, one per file: `patches` gathers fields of view of the input; `tensors` lays tensors out and
places them; `lower` turns layers into paths, segments and runs (`windows`) and into weight rows
(`weights`); `needs` proves widths and finds everything the core lacks; `tables` encodes, with
parameters from `neurons`.
"""

from __future__ import annotations

import numpy as np

from lbq_hw.compiler.draft import CompileError, draft
from lbq_hw.compiler.program import LayerInfo, Program
from lbq_hw.compiler.smallest import smallest_for
from lbq_hw.compiler.tables import Tables
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.config import CoreConfig
from lbq_hw.network import Network

__all__ = ["CompileError", "LayerInfo", "Program", "Tensor", "compile_network", "smallest_for"]


def compile_network(network: Network, config: CoreConfig) -> Program:
    """Compile, or raise one `CompileError` with every reason why it cannot be."""
    drafted = draft(network, config)
    if violations := drafted.violations(config):
        raise CompileError(network.name, config, violations, drafted.changes(config))
    tables = Tables(config)
    info = []
    for lowered, bounds in zip(drafted.layers, drafted.bounds, strict=True):
        assert bounds is not None  # a failed proof is a violation
        info.append(
            LayerInfo(
                name=lowered.layer.name,
                shape=lowered.layer.shape,
                output_shape=lowered.layer.output_shape,
                sources=tuple(path.source for path in lowered.layer.paths),
                weight_first=tables.weight_rows,
                weight_rows=len(lowered.weights),
                acc_bits=bounds.acc_bits,
                membrane_bits=bounds.membrane_bits,
            )
        )
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
