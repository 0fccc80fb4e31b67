"""The smallest core for a network."""

from __future__ import annotations

from lbq_hw import isa
from lbq_hw.compiler.draft import CompileError, draft
from lbq_hw.compiler.needs import rounded
from lbq_hw.config import CoreConfig, largest
from lbq_hw.network import Network


def smallest_for(network: Network, *, lanes: int = 16, **fixed: int) -> CoreConfig:
    """The smallest core with these `lanes` that runs the network; `fixed` fields are kept.

    Unless given, `word` is 32 or P if that is more, `summary` 16 and `units` a quarter of the
    lanes. CompileError if a fixed field is too small, or no core would do.
    """
    word = fixed.get("word", max(32, lanes))
    summary = fixed.get("summary", min(word, 16))
    least = {
        "word": word,
        "summary": summary,
        "units": max(1, lanes // 4),
        "weight_bits": network.weight_bits,
        "acc_bits": 4,
        "membrane_bits": 4,
        "planes": 1,
        "decay_bits": 0,
        "fraction_bits": 0,
        "timesteps": 1,
        "side": 1,
        "window": 1,
        "row_words": 1,
        "plane_words": summary,
        "weight_rows": 1,
        "channels": lanes,
        "logits": lanes,
        **dict.fromkeys(isa.TABLES, 1),
        "layer_paths": 1,
        "exponents": 0,
        "identities": 0,
        "resets": 0,
        "zero_resets": 0,
        "partial_bits": min(1, fixed.get("partial_words", 0)),
    }
    core = CoreConfig(lanes=lanes, **(least | fixed))
    drafted = draft(network, core)
    changes: dict[str, int] = {}
    if "stacks" not in fixed:
        changes["stacks"] = int(any(path.stacked for low in drafted.layers for path in low.paths))
    for need in drafted.needs:
        if need.field not in fixed and need.violation(core):
            value = min(rounded(core, need.field, need.amount), largest(need.field))
            changes[need.field] = max(value, changes.get(need.field, 0))
    core = core.with_(**changes)
    if violations := drafted.violations(core):
        raise CompileError(network.name, core, violations, drafted.changes(core))
    return core
