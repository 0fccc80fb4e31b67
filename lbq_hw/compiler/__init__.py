"""Integer network + CoreConfig -> program; ``python -m lbq_hw.compiler --help`` prints one.

A pipeline of frozen results, each made from the one before:

    Rewritten  `patches`   fields of view of the input gathered, or not
    LaidOut    `layout`    tensors in the plane memory (`tensors`)
    Lowered    `lower`     layers as paths, segments, runs (`windows`) and weight rows (`weights`),
                           with proven widths
    Draft      `draft`     everything that it needs of a core (`needs`), and with external memory
                           the demands of its layers (`passes.blocks`)
    Plan       `passes`    passes and the places of what they read: layers cut for external memory,
                           or one pass per layer
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
    """Compile, or raise one `CompileError` with every reason why it cannot be.

    With external memory, `levels` of a sample, of every tensor by its name, ``(frames, C, H, W)``,
    and the `timing` of the memory only serve to cut layers well.
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

    It does not tell what the passes are. CompileError as in `compile_network`.
    """
    drafted = draft(network, config)
    drafted.check(config)
    return Program.of(drafted, config, made)
