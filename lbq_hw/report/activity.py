"""Sections on what runs: cycles by layer, operations and energy, levels of the neurons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lbq_hw.counts import saved_percent
from lbq_hw.report import charts
from lbq_hw.report.charts import ESTIMATE, Part, Row
from lbq_hw.report.facts import LIMITS, Facts, LayerCycles, LayerNeurons, Price
from lbq_hw.report.markup import Markup, el
from lbq_hw.report.quantities import GAMMA, SPACE, THETA, TIMES, count, quantity, share

_SOURCES = {"rtl": "counted in the RTL", "model": "by the cycle model"}
_WAITING = ("rest", "waiting")
_CYCLES = {
    "useful": ("a1", "accumulating: ACs / lanes"),
    "idle": ("a2", "idle or repeated lanes"),
    "null": ("a3", "doubling, clearing, closing"),
    "scanner": ("rest", "waiting for the scanner"),
    "neurons": ("rest2", "waiting for neuron units"),
}
_PRICES = {
    "paper": "The paper's prices: 4.6 pJ a float MAC, 0.9 pJ an accumulation",
    "integer": "Integer prices: 0.1 pJ an addition, 0.2 pJ an 8-bit multiplication",
}
_EXECUTIONS = {
    "ann": "float ANN",
    "lbq": "this network",
    "lbq_with_padding": "this network, padding taps counted",
    "ann_int8": "int8 ANN",
    "quantized_ann": "quantized ANN",
    "quantized_ann_zero_skipping_estimate": "quantized ANN that skips zeros",
}


def cycles(facts: Facts) -> Markup | None:
    """Bars whose accented part is the utilisation."""
    if (counted := facts.cycles) is None:
        return None
    longest = max((layer.cycles for layer in counted.layers), default=1.0) or 1.0
    split = all(layer.scanner_stalls is not None for layer in counted.layers)
    keys = list(_CYCLES.values()) if split else [*list(_CYCLES.values())[:3], _WAITING]
    of = f" of {counted.dataset}" if counted.dataset else ""
    lead = (
        f"{count(round(counted.cycles))} cycles per image, {_SOURCES[counted.source]}, a mean of "
        f"{count(counted.images)} images{of}. Utilisation is bit-sparse ACs / (lanes {TIMES} "
        f"cycles): {share(counted.utilisation)} in all."
    )
    return charts.section(
        "cycles",
        "Cycles by layer",
        lead,
        charts.figure(
            "cycles",
            charts.legend(keys),
            charts.rows(_cycle_row(layer, longest, split) for layer in counted.layers),
        ),
        el("details", el("summary", "As a table"), _cycle_table(counted.layers)),
    )


def _cycle_row(layer: LayerCycles, longest: float, split: bool) -> Row:
    useful = layer.utilisation * layer.cycles
    amounts = [
        (*_CYCLES["useful"], useful),
        (*_CYCLES["idle"], layer.events - useful),
        (*_CYCLES["null"], layer.null_events),
    ]
    if split and layer.scanner_stalls is not None:
        amounts.append((*_CYCLES["scanner"], layer.scanner_stalls))
        amounts.append((*_CYCLES["neurons"], _waiting(layer) - layer.scanner_stalls))
    else:
        amounts.append((*_WAITING, _waiting(layer)))
    parts = [
        Part(
            share=amount / longest,
            colour=colour,
            title=f"{text}: {count(amount)} of {count(layer.cycles)} cycles",
        )
        for colour, text, amount in amounts
        if amount >= 0.05
    ]
    label: list[str] = [layer.name]
    if layer.limit is not None:
        label.append(el("small", f"limit: {layer.limit}", title=LIMITS[layer.limit]))
    return Row(
        label=label,
        parts=parts,
        values=[el("b", count(layer.cycles)), share(layer.utilisation, decimals=0)],
    )


def _waiting(layer: LayerCycles) -> float:
    return layer.cycles - layer.events - layer.null_events


def _cycle_table(layers: Sequence[LayerCycles]) -> Markup:
    headings = (
        "layer", "cycles", "events", "null events", "waiting", "bit-sparse ACs", "utilisation",
        "limit",
    )  # fmt: skip
    lines = [
        (
            layer.name,
            *(count(number) for number in (layer.cycles, layer.events, layer.null_events)),
            count(_waiting(layer)),
            count(layer.acs_bit_sparse),
            share(layer.utilisation),
            layer.limit or "\N{EN DASH}",
        )
        for layer in layers
    ]
    return charts.table(headings, lines)


def operations(facts: Facts) -> Markup | None:
    if (work := facts.operations) is None:
        return None
    unary = sum(layer.acs_unary for layer in work.layers)
    sparse = sum(layer.acs_bit_sparse for layer in work.layers)
    longest = max((layer.acs_unary for layer in work.layers), default=1.0) or 1.0
    lead = (
        f"{quantity(sparse)} bit-sparse accumulations per image instead of {quantity(unary)} unary "
        f"ones: bit planes save {saved_percent(unary, sparse):.1f}{SPACE}%. A mean of "
        f"{count(work.images)} images, padding taps not counted."
    )
    entries = [
        Row(
            label=[layer.name, el("small", TIMES.join(map(str, layer.shape)))],
            parts=[
                Part(
                    share=layer.acs_bit_sparse / longest,
                    colour="a1",
                    title=f"{count(layer.acs_bit_sparse)} bit-sparse ACs",
                ),
                Part(
                    share=(layer.acs_unary - layer.acs_bit_sparse) / longest,
                    colour="a3",
                    title=f"{count(layer.acs_unary - layer.acs_bit_sparse)} ACs saved",
                ),
            ],
            values=[
                el("b", quantity(layer.acs_bit_sparse)),
                f"\N{MINUS SIGN}{saved_percent(layer.acs_unary, layer.acs_bit_sparse):.0f}{SPACE}%",
            ],
        )
        for layer in work.layers
    ]
    keys = [("a1", "bit-sparse ACs: what the core executes"), ("a3", "saved from unary ACs")]
    return charts.section(
        "operations",
        "Operations and energy",
        lead,
        charts.figure("operations", charts.legend(keys), charts.rows(entries)),
        [_energy(work.energy, prices) for prices in dict.fromkeys(e.prices for e in work.energy)],
        el(
            "p",
            "Energies price the arithmetic alone, at 45 nm (Horowitz 2014); memories, clock tree "
            "and leakage of a real fabric are not in them, and nothing was measured.",
            class_="aside",
        ),
    )


def _energy(entries: Sequence[Price], prices: str) -> Markup:
    chosen = [entry for entry in entries if entry.prices == prices]
    most = max((entry.mj for entry in chosen), default=1.0) or 1.0
    drawn = []
    for entry in chosen:
        own = entry.execution.startswith("lbq")
        energy = quantity(entry.mj / 1e3, "J")
        name = _EXECUTIONS.get(entry.execution, entry.execution.replace("_", " "))
        part = Part(share=entry.mj / most, colour="a1" if own else "rest", title=energy)
        drawn.append(Row(label=name, parts=[part], values=[el("b", energy) if own else energy]))
    caption = [el("span", _PRICES.get(prices, prices)), ESTIMATE]
    return charts.figure(f"energy-{prices}", caption, charts.rows(drawn))


def neurons(facts: Facts) -> Markup | None:
    if facts.neurons is None or not facts.neurons.layers:
        return None
    layers = facts.neurons.layers
    fired = sum(sum(layer.histogram[1:]) for layer in layers)
    every = sum(sum(layer.histogram) for layer in layers)
    single = sum(layer.histogram[1] for layer in layers)
    lead = (
        f"Burst levels of {count(facts.neurons.images)} images: {share(fired / max(every, 1))} of "
        f"the neurons and timesteps are active, and of those {share(single / max(fired, 1))} have "
        "level 1."
    )
    small = [
        el(
            "div",
            el("h3", layer.name, el("small", f"N = {layer.capacity}")),
            charts.histogram(layer.histogram, label=f"levels of {layer.name}"),
            el("p", _facts(layer), class_="note"),
            data_plot=f"levels-{layer.name}",
        )
        for layer in layers
    ]
    return charts.section(
        "neurons",
        "Neurons",
        lead,
        _gammas(layers),
        charts.figure("levels", "Distribution of levels", el("div", small, class_="multiples")),
    )


def _facts(layer: LayerNeurons) -> str:
    active, single = share(layer.active), share(layer.single)
    return f"{active} active · {single} of them at level 1"


def _gammas(layers: Sequence[LayerNeurons]) -> Markup | None:
    known = [(layer, layer.gamma) for layer in layers if layer.gamma is not None]
    if not known:
        return None
    most = max(gamma for _, gamma in known) or 1.0
    return charts.figure(
        "gamma",
        f"Learned step {GAMMA}, and the integer thresholds {THETA} that it became, from the lowest "
        "channel to the highest",
        charts.rows(_gamma_rows(known, most)),
    )


def _gamma_rows(known: Sequence[tuple[LayerNeurons, float]], most: float) -> Iterator[Row]:
    for layer, gamma in known:
        low, high = layer.theta
        yield Row(
            label=[layer.name, el("small", f"{THETA} {count(low)} to {count(high)}")],
            parts=[Part(share=gamma / most, colour="a1", title=f"{GAMMA} = {gamma:.4f}")],
            values=[el("b", f"{gamma:.3f}")],
        )
