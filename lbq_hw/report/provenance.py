"""The section on how it was made: steps with their times, tools, the core's config, digests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from lbq_hw.report import charts
from lbq_hw.report.charts import Part, Row
from lbq_hw.report.facts import Build, Facts
from lbq_hw.report.markup import Child, Markup, el
from lbq_hw.report.quantities import count, duration


def core(facts: Facts) -> Markup | None:
    if facts.core is None:
        return None
    pairs = [(name.replace("_", " "), count(value)) for name, value in _config(facts)]
    return charts.section(
        "core",
        "Core",
        "The bitstream depends on these numbers alone; another network that they suffice for "
        "needs no new synthesis.",
        _pairs("config", pairs),
    )


def _config(facts: Facts) -> Iterable[tuple[str, int]]:
    assert facts.core is not None
    return asdict(facts.core.config).items()


def build(facts: Facts) -> Markup | None:
    if (made := facts.build) is None and facts.model is None:
        return None
    digests = dict(made.digests) if made else {}
    if facts.model:
        digests = {"model": facts.model.digest, **digests}
    if facts.core:
        digests = {"core config": facts.core.digest, **digests}
    tools = [(name, el("code", version)) for name, version in made.tools.items()] if made else []
    hashes = [(name, el("code", digest)) for name, digest in digests.items()]
    return charts.section(
        "build",
        "Build",
        "The same inputs and tools give the same bits. Digests are SHA-256.",
        _next(made) if made and made.next else None,
        [el("p", sentence) for sentence in made.bitstream] if made else None,
        _steps(made) if made and made.steps else None,
        el("h3", "Tools") if tools else None,
        _pairs("tools", tools) if tools else None,
        el("h3", "Digests"),
        _pairs("digests", hashes),
    )


def _next(made: Build) -> list[Markup]:
    """What to type to see it run, and whether the host has to bring the model."""
    said = {
        True: "The model is baked into the bitstream.",
        False: "The model is not baked into the bitstream: the host loads it.",
        None: None,
    }[made.baked]
    commands = el("pre", el("code", "\n".join(made.next)), class_="next")
    return [el("h3", "Next"), *([] if said is None else [el("p", said)]), commands]


def _pairs(kind: str, pairs: Iterable[tuple[str, Child]]) -> Markup:
    entries = [el("div", el("dt", name), el("dd", value)) for name, value in pairs]
    return el("dl", entries, class_=f"pairs {kind}")


def _steps(made: Build) -> Markup:
    longest = max(step.seconds for step in made.steps) or 1.0
    total = sum(step.seconds for step in made.steps)
    entries = [
        Row(
            label=step.name,
            parts=[
                Part(
                    share=step.seconds / longest,
                    colour="rest" if step.cached else "a1",
                    title=f"{step.name}: {duration(step.seconds)}",
                )
            ],
            values=["from the cache" if step.cached else el("b", duration(step.seconds))],
        )
        for step in made.steps
    ]
    seed = "" if made.seed is None else f", seed {made.seed}"
    return charts.figure("steps", f"Steps, {duration(total)} in all{seed}", charts.rows(entries))
