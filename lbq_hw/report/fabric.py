"""Sections on the fabric: resources against the board, clock and critical path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lbq_hw.report import charts
from lbq_hw.report.charts import Mark, Part, Row
from lbq_hw.report.facts import MINOR, Facts
from lbq_hw.report.markup import Markup, el
from lbq_hw.report.quantities import SPACE, count, mega, share
from lbq_hw.tools.placed import KINDS, CriticalPath, Resource, Timing

# Colours of a path's segments; any other kind in nextpnr's report is drawn as a cell's.
_WIRE = "routing"


def resources(facts: Facts) -> Markup | None:
    """Bars of what is used, or of what the estimate says before there is a result."""
    entries = list(_resource_rows(facts))
    if not entries:
        return None
    placed = facts.resources is not None
    keys = [("a1", "used"), ("mark dashed", "estimate before synthesis")]
    if not placed:
        keys = [("a3", "estimate before synthesis")]
    title = facts.board.title if facts.board else "the board"
    lead = f"What the design takes of {title}."
    if not placed:
        lead = f"What the design should take of {title}: estimates, since nothing was placed."
    reasons = facts.fit.reasons if facts.fit and not placed else ()
    return charts.section(
        "resources",
        "Resources",
        lead,
        el("ul", [el("li", reason) for reason in reasons], class_="reasons") if reasons else None,
        charts.figure("resources", charts.legend(keys), charts.rows(entries)),
        _minor(facts.resources or ()),
        _comparison(facts),
    )


def _comparison(facts: Facts) -> Markup | None:
    """Estimate and result side by side."""
    if facts.fit is None or facts.resources is None:
        return None
    used = {resource.kind: resource.used for resource in facts.resources}
    lines = [
        _compared(KINDS[kind], guess, used[kind], count)
        for kind, guess in facts.fit.resources.items()
        if used.get(kind)
    ]
    slowest = facts.timing.slowest if facts.timing else None
    if slowest is not None and facts.fit.fmax_hz is not None:
        lines.append(_compared("Fmax", facts.fit.fmax_hz, slowest.fmax_hz, mega))
    if facts.cycles is not None and facts.fit.cycles is not None:
        name = "cycles per image" + (f" ({facts.fit.remark})" if facts.fit.remark else "")
        lines.append(_compared(name, facts.fit.cycles, facts.cycles.cycles, count))
    headings = ("", "estimate", "result", "estimate is off by")
    return el("details", el("summary", "Estimate and result"), charts.table(headings, lines))


def _compared(
    name: str, guess: float, result: float, text: Callable[[float], str]
) -> tuple[str, ...]:
    return name, text(guess), text(result), f"{100 * (guess / result - 1):+.0f}{SPACE}%"


def _minor(placed: Sequence[Resource]) -> Markup | None:
    taken = [
        f"{count(resource.used)} of {count(resource.available)} {KINDS[resource.kind]}"
        for resource in placed
        if resource.kind in MINOR and resource.used
    ]
    return el("p", f"And {' and '.join(taken)}.", class_="aside") if taken else None


def _resource_rows(facts: Facts) -> Iterator[Row]:
    estimates = facts.fit.resources if facts.fit else {}
    available = facts.board.available if facts.board else {}
    used = {}
    if facts.resources is not None:
        available = {resource.kind: resource.available for resource in facts.resources}
        used = {resource.kind: resource.used for resource in facts.resources}
    for kind, title in KINDS.items():
        have, guess = available.get(kind, 0), estimates.get(kind)
        if kind in MINOR or not have or (not used.get(kind) and not guess):
            continue
        marks = []
        if used and guess is not None:
            marks = [Mark(share=guess / have, title=f"estimate {count(guess)}", dashed=True)]
        taken = used.get(kind, guess or 0)
        colour = "bad" if taken > have else "a1" if used else "a3"
        what = f"{count(taken)} of {count(have)} {title}"
        yield Row(
            label=[title, el("small", kind)],
            parts=[Part(share=taken / have, colour=colour, title=what)],
            values=[
                [el("b", count(taken)), f" / {count(have)}"],
                share(taken / have, decimals=0),
            ],
            marks=marks,
        )


def timing(facts: Facts) -> Markup | None:
    if facts.timing is None or not facts.timing.clocks:
        return None
    result = facts.timing
    lead = "The clock is met" if result.met else "The clock is missed"
    lead += " after routing" + (f", seed {result.seed}" if result.seed is not None else "")
    path = _worst(result)
    return charts.section(
        "timing",
        "Timing",
        f"{lead}.{_seeds(result)}",
        charts.figure("fmax", _fmax_legend(facts), charts.rows(_clock_rows(facts, result))),
        _path(path) if path else None,
    )


def _seeds(result: Timing) -> str:
    if result.seeds is None or len(result.seeds) < 2:
        return ""
    tried = ", ".join(f"{seed}: {mega(fmax)}" for seed, fmax in result.seeds.items())
    return f" Seeds tried and their Fmax: {tried}."


def _fmax_legend(facts: Facts) -> Markup:
    guess = facts.fit.fmax_hz if facts.fit else None
    keys = [("a1", "Fmax after routing"), ("mark", "core clock")]
    if guess is not None:
        keys.append(("mark dashed", f"estimate before synthesis, {mega(guess)}"))
    return charts.legend(keys)


def _clock_rows(facts: Facts, result: Timing) -> Iterator[Row]:
    guess = facts.fit.fmax_hz if facts.fit else None
    full = max([max(clock.fmax_hz, clock.target_hz) for clock in result.clocks] + [guess or 0.0])
    full *= 1.08
    for clock in result.clocks:
        marks = [Mark(share=clock.target_hz / full, title=f"core clock {mega(clock.target_hz)}")]
        if guess is not None:
            title = f"estimate {mega(guess)}"
            marks.append(Mark(share=guess / full, title=title, dashed=True))
        met = clock.fmax_hz >= clock.target_hz
        parts = [
            Part(
                share=clock.fmax_hz / full,
                colour="a1" if met else "bad",
                title=f"Fmax {mega(clock.fmax_hz)}",
            )
        ]
        room = share(clock.fmax_hz / clock.target_hz - 1, decimals=0)
        yield Row(
            label=[clock.name, el("small", f"needs {mega(clock.target_hz)}")],
            parts=parts,
            values=[el("b", mega(clock.fmax_hz)), f"{'+' if met else ''}{room}"],
            marks=marks,
        )


def _worst(result: Timing) -> CriticalPath | None:
    """The longest path between registers; one that leaves the chip is not timed."""
    inside = [path for path in result.paths if "<async>" not in (path.source, path.sink)]
    return max(inside, key=lambda path: path.delay_ns, default=None)


def _path(path: CriticalPath) -> Markup:
    total = path.delay_ns or 1.0
    wires = sum(segment.delay_ns for segment in path.segments if segment.kind == _WIRE)
    parts = [
        Part(
            share=segment.delay_ns / total,
            colour="a3" if segment.kind == _WIRE else "a1",
            title=f"{segment.kind} {segment.delay_ns:.2f} ns, to {segment.sink}",
        )
        for segment in path.segments
    ]
    levels = sum(segment.kind == "logic" for segment in path.segments)
    keys = [
        ("a1", f"cells, {total - wires:.1f}{SPACE}ns"),
        ("a3", f"wires, {wires:.1f}{SPACE}ns"),
    ]
    arrival, lines = 0.0, []
    for segment in path.segments:
        arrival += segment.delay_ns
        place = segment.net if segment.kind == _WIRE else segment.sink
        lines.append((segment.kind, el("code", place), f"{segment.delay_ns:.2f}", f"{arrival:.2f}"))
    caption = [
        el("span", f"Critical path: {total:.1f}{SPACE}ns through {levels} levels of logic"),
        charts.legend(keys),
    ]
    ends = [path.segments[0].source, path.segments[-1].sink] if path.segments else []
    return charts.figure(
        "critical-path",
        caption,
        charts.bar(parts),
        el("div", [el("code", end) for end in ends], class_="ends"),
        el(
            "details",
            el("summary", f"All {len(path.segments)} segments"),
            charts.table(("segment", "net or cell", "ns", "arrival, ns"), lines, text=2),
        ),
    )
