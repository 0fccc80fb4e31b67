"""The top of the page: what was built, and the numbers that matter most."""

from __future__ import annotations

from lbq_hw.report.charts import ESTIMATE
from lbq_hw.report.facts import MINOR, Facts
from lbq_hw.report.markup import Child, Markup, el
from lbq_hw.report.quantities import EQUALS, SPACE, count, mega, quantity, share
from lbq_hw.report.summary import energy_mj, fits, summary
from lbq_hw.tools.placed import KINDS

_NAMED = 10  # classes that the page names


def title(facts: Facts) -> str:
    model = facts.model.name if facts.model else "a network"
    board = facts.board.title if facts.board else "no board"
    return f"{model} on {board}"


def header(facts: Facts) -> Markup:
    return el(
        "header",
        el("p", "lbq-hw build report", class_="eyebrow"),
        el("h1", title(facts)),
        el("p", " · ".join(_details(facts)), class_="lead"),
    )


def _details(facts: Facts) -> list[str]:
    details = []
    if facts.core:
        details.append(f"{facts.core.config.lanes} lanes")
    if facts.board:
        details.append(f"{facts.board.fabric or 'no fabric'} at {mega(facts.board.clock_hz)}")
    if (model := facts.model) is not None:
        details.append(f"T = {model.timesteps}, N = {model.capacity}".replace(" = ", EQUALS))
        details.append(f"{model.weight_bits}-bit weights, {count(model.parameters)} parameters")
        if model.accuracy is not None:
            kind = f"{model.accuracy_split} images" if model.accuracy_split else "images"
            where = f" of {count(model.accuracy_images)} {kind}" if model.accuracy_images else ""
            details.append(f"{model.accuracy:.2f}{SPACE}%{where} right")
        if model.class_names:
            more = ", ..." if len(model.class_names) > _NAMED else ""
            details.append(f"classes {', '.join(model.class_names[:_NAMED])}{more}")
    return details


def band(facts: Facts) -> Markup:
    """Six cards; a dash where a build did not come that far."""
    cards = (_fit, _timing, _latency, _throughput, _energy, _equality)
    return el("div", [card(facts) for card in cards], class_="band", data_plot="summary")


def _card(
    label: str, value: str | None, note: Child, *, good: bool | None = None, tag: Child = None
) -> Markup:
    state = "missing" if value is None else {True: "good", False: "bad", None: None}[good]
    return el(
        "div",
        el("div", label, tag, class_="name"),
        el("div", value or "\N{EN DASH}", class_="big"),
        el("div", note, class_="note"),
        class_=f"card {state}" if state else "card",
    )


def _fit(facts: Facts) -> Markup:
    verdict = fits(facts)
    if verdict is None:
        return _card("Fit", None, "no fabric" if _no_fabric(facts) else "not placed")
    value = "Fits" if verdict else "Does not fit"
    if facts.resources:
        main = [resource for resource in facts.resources if resource.kind not in MINOR]
        fullest = max(main, key=lambda resource: resource.used / resource.available)
        note = f"{share(fullest.used / fullest.available, decimals=0)} of the {KINDS[fullest.kind]}"
        return _card("Fit", value, note, good=verdict)
    reasons = facts.fit.reasons if facts.fit else ()
    note = "; ".join(reasons) or "by the model of the fabric"
    return _card("Fit", value, note, good=verdict, tag=ESTIMATE)


def _no_fabric(facts: Facts) -> bool:
    return facts.board is not None and not facts.board.fabric


def _timing(facts: Facts) -> Markup:
    slowest = facts.timing.slowest if facts.timing else None
    if facts.timing is None or slowest is None:
        return _card("Fmax", None, "no fabric" if _no_fabric(facts) else "not routed")
    room = slowest.fmax_hz / slowest.target_hz - 1
    verdict = f"{share(room, decimals=0)} room" if facts.timing.met else "misses it"
    note = f"clock {mega(slowest.target_hz)}, {verdict}"
    return _card("Fmax", mega(slowest.fmax_hz), note, good=facts.timing.met)


def _latency(facts: Facts) -> Markup:
    seconds = summary(facts)["seconds_per_image"]
    if facts.cycles is None or seconds is None:
        return _card("Time per image", None, "not simulated")
    missed = facts.timing is not None and not facts.timing.met
    condition = "were the clock met" if missed else "computing alone"
    where = f" on {facts.cycles.dataset}" if facts.cycles.dataset else ""
    note = f"{count(round(facts.cycles.cycles))} cycles{where}, {condition}"
    return _card("Time per image", quantity(seconds, "s"), note)


def _throughput(facts: Facts) -> Markup:
    """Images per second over the link and of the core alone; the one that limits comes first."""
    known = summary(facts)
    whole, core = (known[key] for key in ("images_per_second", "images_per_second_core"))
    if facts.cycles is None or core is None:
        return _card("Images per second", None, "not simulated")
    used = f"lanes {share(facts.cycles.utilisation, decimals=0)} utilised"
    if facts.link is None or whole is None:
        return _card("Images per second", _rate(core), f"without the link, {used}")
    line = f"over the link at {quantity(facts.link.baud, 'baud')}"
    if known["link_seconds_per_image"] > known["seconds_per_image"]:
        note = f"at most, {line}; {_rate(core)} the core alone, {used}"
        return _card("Images per second", _rate(whole), note)
    return _card("Images per second", _rate(core), f"the core alone, {used}; {_rate(whole)} {line}")


def _rate(rate: float) -> str:
    return count(round(rate)) if rate >= 10 else f"{rate:.2f}"


def _energy(facts: Facts) -> Markup:
    mj = energy_mj(facts)
    if mj is None:
        return _card("Energy per image", None, "not counted")
    note = "additions alone, 45 nm prices"
    return _card("Energy per image", quantity(mj / 1e3, "J"), note, tag=ESTIMATE)


def _equality(facts: Facts) -> Markup:
    if facts.simulation is None:
        return _card("RTL against golden", None, "not simulated")
    exact = facts.simulation.bit_exact
    images = f"{count(facts.simulation.images)} images in {facts.simulation.simulator}"
    note = images if exact else facts.simulation.difference or "see simulation.json"
    return _card("RTL against golden", "Bit-exact" if exact else "Differs", note, good=exact)
