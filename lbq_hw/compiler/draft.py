"""A network lowered for a core's P, W, S and weight bits, and checked against its other sizes."""

from __future__ import annotations

from dataclasses import dataclass

from lbq_hw.compiler import needs
from lbq_hw.compiler.errors import CompileError
from lbq_hw.compiler.layout import lay_out
from lbq_hw.compiler.lower import Lowered, lower
from lbq_hw.compiler.needs import Need
from lbq_hw.compiler.passes.blocks import Levels, block_rows, demands
from lbq_hw.compiler.passes.demand import LayerDemand
from lbq_hw.compiler.patches import rewrite
from lbq_hw.config import CoreConfig, largest
from lbq_hw.network import Network


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft(Lowered):
    """A lowered network with its `needs`; `demands` are empty without external memory."""

    demands: tuple[LayerDemand, ...]
    needs: tuple[Need, ...]

    def violations(self, config: CoreConfig) -> tuple[str, ...]:
        """One sentence for everything that the core lacks."""
        texts = [text for need in self.needs if (text := need.violation(config))]
        return tuple(dict.fromkeys([*self.failures, *texts]))

    def changes(self, config: CoreConfig) -> dict[str, int]:
        """Fields that must grow, with their smallest sufficient values; empty if none would do."""
        changes: dict[str, int] = {}
        for need in self.needs:
            if need.violation(config) is None:
                continue
            value = needs.rounded(config, need.field, need.amount)
            if self.failures or value > largest(need.field):
                return {}
            changes[need.field] = max(value, changes.get(need.field, 0))
        return changes

    def check(self, config: CoreConfig) -> None:
        """CompileError with everything that the core lacks."""
        if violations := self.violations(config):
            raise CompileError(self.source.name, config, violations, self.changes(config))


def draft(network: Network, config: CoreConfig, levels: Levels | None = None) -> Draft:
    """Rewrite, lay out, lower and check; memory sizes serve only to name the layer that overflows.

    `levels` of a sample tell how many events each layer has, for a core with external memory.
    """
    forms = rewrite(network, config)
    laid = lay_out(forms, config)
    lowered = lower(laid, config)
    asked: tuple[LayerDemand, ...] = ()
    if config.external:
        rows = block_rows(config.weight_rows)
        asked = demands(lowered, config, levels, block_rows=rows)
    found = needs.find(lowered, asked, config)
    return Draft(**vars(lowered), demands=asked, needs=found)
