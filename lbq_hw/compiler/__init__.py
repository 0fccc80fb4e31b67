"""Integer network + CoreConfig -> program; ``python -m lbq_hw.compiler --help`` prints one.

A pipeline of frozen results, each made from the previous one:

    Rewritten  `patches`   the network, with fields of view of the input gathered or not
    LaidOut    `layout`    tensors in the plane memory (`tensors`)
    Lowered    `lower`     layers as paths, segments, runs (`windows`) and weight rows (`weights`),
                           with proven widths
    Draft      `draft`     all requirements on a core (`needs`), and for external memory the demands
                           of each layer (`passes.blocks`)
    Plan       `passes`    passes, and the places of their records and weights: layers cut for
                           external memory, or one pass per layer
    Program    `emit`      writes (`records`, `neurons`) as a tape
"""

from __future__ import annotations

from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.compiler.draft import draft
from lbq_hw.compiler.emit import emit
from lbq_hw.compiler.errors import CompileError
from lbq_hw.compiler.passes import PlanError, plan
from lbq_hw.compiler.passes.blocks import Levels
from lbq_hw.compiler.program import LayerInfo, PassInfo, Program
from lbq_hw.compiler.smallest import smallest_for
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.config import CoreConfig
from lbq_hw.network import Network

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
    """Compile, or raise one `CompileError` with every reason why the network does not fit.

    `levels` and `timing` are used only with external memory, and only to cut layers well. `levels`:
    the levels of a sample, ``(frames, C, H, W)`` by the name of each tensor. `timing`: of the
    memory.
    """
    drafted = draft(network, config, levels)
    drafted.check(config)
    try:
        planned = plan(drafted, config, timing)
    except PlanError as error:
        raise CompileError(network.name, config, (str(error),), error.changes) from None
    return emit(drafted, planned, config)


def program_of_tape(network: Network, config: CoreConfig, made: bytes) -> Program:
    """The program of a network whose tape was `made` before: no layer is cut again.

    The program then has no list of passes. CompileError as in `compile_network`.
    """
    drafted = draft(network, config)
    drafted.check(config)
    return Program.of(drafted, config, made)
