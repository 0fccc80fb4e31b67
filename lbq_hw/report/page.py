"""The page: one self-contained HTML file, made from the facts only.

Its text is in ``templates/``. A template sees the parts of `Facts` by their names, the numbers of
``summary.json`` as ``summary``, and the functions of `lbq_hw.report.quantities` as filters. An
undefined name in a template is an error.
"""

from __future__ import annotations

from dataclasses import asdict

import jinja2

from lbq_hw.golden.counts import saved_percent
from lbq_hw.report import quantities
from lbq_hw.report.facts import LIMITS, MINOR, MOST_CLASSES, Facts
from lbq_hw.report.summary import summary
from lbq_hw.tools.placed import KINDS

_FORMATS = {function.__name__: function for function in quantities.FORMATS}
_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("lbq_hw.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    extensions=["jinja2.ext.do"],
)
_ENVIRONMENT.filters.update(_FORMATS, asdict=asdict)
_ENVIRONMENT.globals.update(
    _FORMATS,
    KINDS=KINDS,
    LIMITS=LIMITS,
    MINOR=MINOR,
    MOST_CLASSES=MOST_CLASSES,
    saved_percent=saved_percent,
)


def render(facts: Facts) -> str:
    """The whole page; a section whose part is missing is left out."""
    available = facts.board.available if facts.board else {}
    if facts.resources is not None:
        available = {resource.kind: resource.available for resource in facts.resources}
    return _ENVIRONMENT.get_template("page.html").render(
        vars(facts), summary=summary(facts), available=available
    )
