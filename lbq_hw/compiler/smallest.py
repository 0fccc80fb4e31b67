"""The smallest core for a network."""

from __future__ import annotations

from typing import Any

from lbq_hw import isa
from lbq_hw.compiler.draft import draft
from lbq_hw.compiler.needs import rounded
from lbq_hw.config import (
    MOST_NARROW,
    SPREAD_WEIGHT_BITS,
    CoreConfig,
    Profile,
    largest,
    narrow_mask,
)
from lbq_hw.network import Network
from lbq_hw.network.neuron import RULES


def smallest_for(network: Network, *, lanes: int = 16, **fixed: Any) -> CoreConfig:
    """The smallest core with these `lanes` that runs the network; `fixed` fields are kept.

    The defaults are: `word` 32, or P if P is larger; `summary` 16; `units` a quarter of the lanes;
    `profile` standard, or spread if weights or external memory require it. CompileError if a fixed
    field is too small, or if no core suffices.
    """
    word = fixed.get("word", max(32, lanes))
    summary = fixed.get("summary", min(word, 16))
    units = fixed.get("units", max(1, lanes // 4))
    external = fixed.get("external", 0) > 0
    least = {
        "word": word,
        "summary": summary,
        "units": units,
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
        **{rule.ability: 0 for rule in RULES},
        "partial_words": lanes // units if external else 0,
        "partial_bits": int(external),
        "profile": Profile.SPREAD if external else Profile.STANDARD,
    }
    if external:
        least["narrow"] = narrow_mask(network.narrow_bits[-MOST_NARROW:])
    core = CoreConfig(lanes=lanes, **(least | fixed))
    drafted = draft(network, core)
    changes: dict[str, Any] = {}
    for need in drafted.needs:
        if need.field not in fixed and need.violation(core):
            value = min(rounded(core, need.field, need.amount), largest(need.field))
            changes[need.field] = max(value, changes.get(need.field, 0))
    core = core.with_(**changes)
    if "profile" not in fixed and _weight_bits(core) > SPREAD_WEIGHT_BITS:
        core = core.with_(profile=Profile.SPREAD)
    drafted.check(core)
    return core


def _weight_bits(core: CoreConfig) -> int:
    return core.lanes * core.weight_bits * core.weight_rows
