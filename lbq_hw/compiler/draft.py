"""A network made ready for a core's P, W, S and weight bits, and judged against its sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbq_hw.compiler import needs, patches, tensors
from lbq_hw.compiler.lower import LoweredLayer, lower
from lbq_hw.compiler.needs import Need
from lbq_hw.compiler.passes.blocks import Levels, block_rows, layer_demands
from lbq_hw.compiler.passes.demand import LayerDemand
from lbq_hw.compiler.patches import Patches
from lbq_hw.compiler.places import place_over
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.compiler.weights import tile_count
from lbq_hw.config import CoreConfig, largest
from lbq_hw.network import INPUT, Bounds, Network


class CompileError(ValueError):
    """A network that does not fit.

    Members: `violations`, one sentence each; `changes`, CoreConfig fields and the least values
    that would do, empty if no core would; `would_do`, the core with these changes, or None.
    """

    def __init__(
        self, name: str, config: CoreConfig, violations: tuple[str, ...], changes: dict[str, int]
    ) -> None:
        self.violations = violations
        self.changes = changes
        self.would_do = config.with_(**changes) if changes else None
        lines = [f"network {name!r} does not fit the core:", *(f"  {text}" for text in violations)]
        if changes:
            wanted = ", ".join(f"{field} = {value}" for field, value in changes.items())
            lines.append(f"a core with {wanted} would do")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft:
    """Placed tensors; how the input is gathered, if it is; lowered layers; their proven bounds,
    None where `failures` says why not. `demands`: what layers ask of a core with external memory.
    """

    tensors: dict[str, Tensor]
    patches: Patches | None
    layers: tuple[LoweredLayer, ...]
    bounds: tuple[Bounds | None, ...]
    needs: tuple[Need, ...]
    failures: tuple[str, ...]
    demands: tuple[LayerDemand, ...] = ()

    def violations(self, config: CoreConfig) -> tuple[str, ...]:
        """Everything that the core lacks."""
        texts = [text for need in self.needs if (text := need.violation(config))]
        return tuple(dict.fromkeys([*self.failures, *texts]))

    def changes(self, config: CoreConfig) -> dict[str, int]:
        """Fields that must grow, with the least values that do; nothing if no core would."""
        changes: dict[str, int] = {}
        for need in self.needs:
            if need.violation(config) is None:
                continue
            value = needs.rounded(config, need.field, need.amount)
            if self.failures or value > largest(need.field):
                return {}
            changes[need.field] = max(value, changes.get(need.field, 0))
        return changes


def refuse_hopeless(network: Network, config: CoreConfig) -> None:
    """CompileError for tables that no core holds, before all memory goes to making them."""
    rows = runs = 0
    for layer in network.layers:
        tiles, most = tile_count(layer.shape[0], config.lanes), 0
        for path in layer.paths:
            height, width = path.kernel
            inputs = 1 if path.is_identity else path.weight.shape[1]
            rows += tiles * inputs * height * width
            most = max(most, height * width * path.pool.taps if path.pool else height)
        runs += most  # paths of one layer may share them
    for what, unit, amount, field in (
        ("the weight memory", "rows", rows, "weight_rows"),
        ("the run table", "entries", runs, "runs"),
    ):
        if amount > largest(field):
            text = f"{what} needs at least {amount} {unit}; no core has more than {largest(field)}"
            raise CompileError(network.name, config, (text,), {})


def draft(network: Network, config: CoreConfig, levels: Levels | None = None) -> Draft:
    """Lay out, lower and prove. The sizes of memories only name the layer that overflows.

    `levels` of a sample tell how busy layers are, for a core with external memory.
    """
    original = network
    network, gathered, placed = _place(network, config)
    if not config.external:
        refuse_hopeless(network, config)
    layers = tuple(
        lower(layer, network.is_static(layer), placed, config) for layer in network.layers
    )
    bounds: list[Bounds | None] = []
    failures = []
    for layer in original.layers:  # gathering adds zeros, and what is proven stays proven
        try:
            bounds.append(original.bounds(layer))
        except OverflowError as error:
            bounds.append(None)
            failures.append(str(error))
    demands: tuple[LayerDemand, ...] = ()
    if config.external:
        if levels is not None and gathered is not None:
            levels = {**levels, INPUT: gathered.gather(np.asarray(levels[INPUT]))}
        rows = block_rows(config.weight_rows)
        demands = layer_demands(network, layers, config, levels, block_rows=rows)
    return Draft(
        tensors=placed,
        patches=gathered,
        layers=layers,
        bounds=tuple(bounds),
        needs=tuple(needs.find(network, layers, placed, bounds, config, demands)),
        failures=tuple(failures),
        demands=demands,
    )


def _place(
    network: Network, config: CoreConfig
) -> tuple[Network, Patches | None, dict[str, Tensor]]:
    """The network on its input, gathered or not, and where tensors lie.

    With external memory, outputs take the place of what they bypass, and the input is not gathered
    if only then the activations fit.
    """
    rewritten, gathered = patches.rewrite(network, config)
    if not config.external:
        laid_out = tensors.lay_out(rewritten, config)
        return rewritten, gathered, tensors.place(laid_out, config.summary)
    placed, plain = place_over(rewritten, config), place_over(network, config)
    if _end(placed) > config.plane_words and _end(plain) < _end(placed):
        return network, None, plain
    return rewritten, gathered, placed


def _end(placed: dict[str, Tensor]) -> int:
    return max(tensor.end for tensor in placed.values())
