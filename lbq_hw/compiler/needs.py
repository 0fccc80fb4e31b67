"""The requirements of a network on a core, and which of them a given core does not meet.

*Why `Bounds.acc_bits` is enough for Horner's scheme.* After some of a step's events, at exponent e,
a lane holds a number a. Then 2**e * a is a sum of weight * (upper bits of a level) over some of the
synapses. The upper bits of a level are at most the level, and limbs have the sign of their weight.
So 2**e * a lies between the sum of all negative and the sum of all positive contributions, which
are acc_low and acc_high. So does a, because it is nearer to 0.

*Why parameters may wrap.* U and V are proven to fit the membrane. An addition modulo 2**bits is
exact if its result fits, whatever its operands were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lbq_hw import numeric
from lbq_hw.compiler import neurons
from lbq_hw.compiler.lower import Lowered, LoweredLayer, LoweredPath
from lbq_hw.compiler.passes.blocks import block_rows
from lbq_hw.compiler.passes.demand import LayerDemand
from lbq_hw.compiler.passes.placing import side_by_side
from lbq_hw.config import CoreConfig, largest
from lbq_hw.network import Bounds
from lbq_hw.network.neuron import RULES


class Need(NamedTuple):
    """`what` at `place` needs at least `amount` `unit` of the CoreConfig field `field`."""

    place: str
    what: str
    unit: str
    amount: int
    field: str

    def violation(self, config: CoreConfig) -> str | None:
        """One sentence if the core has less."""
        have = getattr(config, self.field)
        if self.amount <= have:
            return None
        text = (
            f"{self.place}: {self.what} needs {self.amount} {self.unit}, "
            f"the core has {have} ({self.amount - have} short)"
        )
        if self.amount > largest(self.field):
            return f"{text}; no core has more than {largest(self.field)}"
        return f"{text}; {self.field} = {rounded(config, self.field, self.amount)} would do"


def rounded(config: CoreConfig, field: str, amount: int) -> int:
    """The smallest legal value of a field that is at least `amount`."""
    units = {
        "plane_words": config.summary,
        "channels": config.lanes,
        "logits": config.lanes,
        "partial_words": config.groups,
    }
    unit = units.get(field, 1)
    return -(-amount // unit) * unit


def find(lowered: Lowered, demands: Sequence[LayerDemand], config: CoreConfig) -> tuple[Need, ...]:
    """Every need, whether the core meets it or not.

    `demands`: with external memory, where passes share the memories; else empty.
    """
    layers, tensors = lowered.layers, lowered.tensors.values()
    timesteps = lowered.network.timesteps
    needs = [Need("network", "the time loop", "timesteps", timesteps, "timesteps")]
    for layer, proven in zip(layers, lowered.bounds, strict=True):
        needs += _layer(layer, proven)
    for tensor in tensors:
        place = f"tensor {tensor.name!r}"
        needs.append(Need(place, "a row", "words", tensor.row_words, "row_words"))
    peak = max(tensors, key=lambda tensor: tensor.end)
    place = f"tensor {peak.name!r}"
    needs.append(Need(place, "the activation memory", "words", peak.end, "plane_words"))
    logits = _logits(layers[-1], config)
    if not config.external:
        return (*needs, *_totals(layers, config), logits)
    for layer, demand in zip(layers, demands, strict=True):
        needs += _passes(layer, demand, config)
    return (*needs, logits)


def _layer(lowered: LoweredLayer, bounds: Bounds | None) -> Iterator[Need]:
    layer, place = lowered.layer, f"layer {lowered.layer.name!r}"
    weights = lowered.weights
    width = max(2, numeric.signed_width(int(weights.min()), int(weights.max())))
    yield Need(place, "a weight", "bits", width, "weight_bits")
    if bounds is not None:
        yield Need(place, "the accumulator", "bits", bounds.acc_bits, "acc_bits")
        # Room for one more than U's maximum, so that the largest number is never reached as theta.
        low, high = int(bounds.u_low.min()), int(bounds.u_high.max()) + 1
        yield Need(place, "the membrane", "bits", numeric.signed_width(low, high), "membrane_bits")
    yield Need(place, "a level", "planes", neurons.output_planes(layer), "planes")
    yield Need(place, "the fraction", "bits", layer.fraction_bits, "fraction_bits")
    yield Need(place, "the decay", "bits", neurons.decay(layer)[1], "decay_bits")
    window = lowered.window
    sides = [*layer.shape[1:], *layer.output_shape[1:]]
    sides += [
        stride + 1
        for stride, size in zip(window.stride, layer.output_shape[1:], strict=True)
        if size > 1
    ]
    yield Need(place, "its largest loop", "rows or columns", max(sides), "side")
    yield Need(place, "its max-pool", "rows or columns", max(window.kernel), "window")
    yield Need(place, "it", "paths", len(lowered.paths), "layer_paths")
    highest = max(segment.exponent for segment in lowered.segments)
    yield Need(place, "the highest exponent", "doublings", highest, "exponents")
    identities = any(path.identity for path in lowered.paths)
    yield Need(place, "an identity shortcut", "identity", int(identities), "identities")
    for rule in RULES:
        needed = layer.neuron is not None and rule.needed(layer.neuron)
        yield Need(place, rule.need, rule.unit, int(needed), rule.ability)
    for path in lowered.paths:
        yield from _reach(place, path)


def _reach(place: str, path: LoweredPath) -> Iterator[Need]:
    """Offsets can exceed their memory four times; only absurd padding or strides need more."""
    words = max(*map(abs, path.rows.reach), path.rows.step) * path.source.row_words
    words = max(words, *(run.row for run in path.runs))
    bits = max(*map(abs, path.columns.reach), path.columns.step) * path.source.pitch
    bits = max(bits, *(run.column + run.length - 1 for run in path.runs))
    what = f"the window on {path.source.name!r}"
    yield Need(place, what, "words", words // 4 + 1, "plane_words")
    yield Need(place, what, "words per row", bits // (4 * path.source.word) + 1, "row_words")


def _totals(layers: Sequence[LoweredLayer], config: CoreConfig) -> Iterator[Need]:
    """Memories that all layers share; `place` is the first layer that does not fit the core."""
    lanes = config.lanes
    different = [dict.fromkeys(path.runs for path in low.paths) for low in layers]  # are shared
    kinds = (
        ("the weight memory", "rows", "weight_rows", [len(low.weights) for low in layers]),
        ("the parameter memory", "channels", "channels", [low.tiles * lanes for low in layers]),
        ("the layer table", "entries", "layers", [1] * len(layers)),
        ("the path table", "entries", "paths", [len(low.paths) for low in layers]),
        ("the segment table", "entries", "segments", [len(low.segments) for low in layers]),
        ("the run table", "entries", "runs", [sum(map(len, runs)) for runs in different]),
    )
    for what, unit, field, amounts in kinds:
        total, full = 0, layers[-1]
        for lowered, amount in zip(layers, amounts, strict=True):
            if total <= getattr(config, field) < total + amount:
                full = lowered
            total += amount
        yield Need(f"layer {full.layer.name!r}", what, unit, total, field)


def _logits(readout: LoweredLayer, config: CoreConfig) -> Need:
    place, (_, height, width) = f"layer {readout.layer.name!r}", readout.layer.shape
    amount = readout.tiles * config.lanes * height * width
    return Need(place, "the logits memory", "logits", amount, "logits")


def _passes(lowered: LoweredLayer, demand: LayerDemand, config: CoreConfig) -> Iterator[Need]:
    """Needs of a layer that is cut into passes: tables for all its paths, and room either for all
    its blocks, or for two blocks besides those of identities and for the partial sums of one output
    row.
    """
    place = f"layer {lowered.layer.name!r}"

    yield Need(place, "the path table", "entries", len(lowered.paths), "paths")
    yield Need(place, "the segment table", "entries", len(lowered.segments), "segments")
    rows, stays = block_rows(config.weight_rows), len(demand.resident)
    slots, words = config.weight_rows // rows, int(demand.steps.max()) * config.groups
    cut = [
        Need(place, "the weight memory", "rows", rows * (stays + 2), "weight_rows"),
        Need(place, "an output row of partial sums", "words", words, "partial_words"),
        Need(place, "a partial sum", "bits", demand.partial_bits, "partial_bits"),
    ]
    whole = len(demand.blocks) + stays <= slots
    if not demand.blocks:
        yield Need(place, "the weight memory", "rows", rows * stays, "weight_rows")
    elif not whole:
        yield from cut
    runs = side_by_side((*demand.resident, *demand.blocks), rows)
    if demand.blocks and not (whole and any(one.violation(config) for one in cut)):
        runs = max(len(block.pieces) for block in demand.blocks)
        runs += sum(len(block.pieces) for block in demand.resident)
    yield Need(place, "the run table", "entries", runs, "runs")
