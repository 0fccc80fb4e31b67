"""The table of the zoo, from the evaluations beside its networks: ``python -m lbq_hw.zoo``."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from lbq_hw import zoo
from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.markdown import table
from lbq_hw.units import si

COLUMNS = (
    "model", "T", "N", "weights", "parameters", "images", "float", "integer", "bit-sparse ACs",
    "unary ACs", "file",
)  # fmt: skip


def row(name: str) -> tuple[str, ...]:
    """One network's line of the table; its figures were printed by ``lbq_hw.evaluate --json``."""
    facts: dict[str, Any] = json.loads(zoo.evaluation(name).read_text(encoding="utf-8"))
    return (
        name,
        str(facts["timesteps"]),
        str(facts["capacity"]),
        f"{facts['weight_bits']} bit",
        f"{facts['parameters']:,}",
        f"{facts['images']:,}",
        f"{facts['float_accuracy']:.2f} %",
        f"{facts['accuracy']:.2f} %",
        si(facts["acs_bit_sparse"]),
        si(facts["acs_unary"]),
        f"{si(zoo.find(name).stat().st_size)}B",
    )


def markdown() -> str:
    """The table of docs/zoo.md."""
    return table(COLUMNS, map(row, zoo.names()))


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.zoo") -> int:
    parser = Parser(
        prog=prog,
        description="List the trained networks that ship with the project. Each name can be given "
        "wherever a command takes --model.",
    )
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/zoo.md")
    parser.add_argument("--json", action="store_true", help="one JSON object, evaluations by name")
    args = parser.parse_args(argv)
    try:
        shown = _listed(as_markdown=args.markdown, as_json=args.json)
    except (OSError, ValueError, LookupError, TypeError) as error:
        return ending.refuse(f"the zoo's evaluations cannot be read ({error})")
    if isinstance(shown, str):
        print(shown, end="")
    else:
        Console(width=None if sys.stdout.isatty() else 130).print(shown)
    return 0


def _listed(*, as_markdown: bool, as_json: bool) -> str | Table:
    """The text to print."""
    if as_markdown:
        return markdown()
    if as_json:
        names = zoo.names()
        found = {name: json.loads(zoo.evaluation(name).read_text("utf-8")) for name in names}
        return json.dumps(found) + "\n"
    shown = Table(title="the zoo; ACs are per image, padding taps not counted")
    for column in COLUMNS:
        first = column == "model"
        shown.add_column(column, justify="left" if first else "right", no_wrap=first)
    for name in zoo.names():
        shown.add_row(*row(name))
    return shown


if __name__ == "__main__":
    sys.exit(ending.run(main))
