"""The page: one HTML file that asks for nothing else, made from facts alone."""

from __future__ import annotations

from importlib.resources import files

from lbq_hw.report import activity, fabric, overview, provenance, storage
from lbq_hw.report.facts import Facts
from lbq_hw.report.markup import Markup, el

_SECTIONS = {
    "Resources": fabric.resources,
    "Timing": fabric.timing,
    "Cycles": activity.cycles,
    "Operations": activity.operations,
    "Neurons": activity.neurons,
    "Memory": storage.memory,
    "Proofs": storage.proofs,
    "Core": provenance.core,
    "Build": provenance.build,
}


def render(facts: Facts) -> str:
    """The whole page; a section whose part is missing is left out."""
    made = {name: section(facts) for name, section in _SECTIONS.items()}
    shown = {name: section for name, section in made.items() if section is not None}
    links = [el("a", name, href=f"#{name.lower()}") for name in shown]
    style = files("lbq_hw.report").joinpath("style.css").read_text(encoding="utf-8")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("link", rel="icon", href="data:,"),
        el("title", f"{overview.title(facts)} · lbq-hw"),
        el("style", Markup(style)),
    )
    body = el(
        "body",
        overview.header(facts),
        overview.band(facts),
        el("nav", links, aria_label="Sections"),
        el("main", shown.values()),
    )
    return f"<!DOCTYPE html>\n{el('html', head, body, lang='en')}\n"
