"""docs/evidence.md from the JSON that commands print: ``python -m tools.evidence docs``.

Each file of docs/evidence is the output of one command of `KINDS` with ``--json``. For a missing
file, the page has a line that says so.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbq_hw.commands.parser import Parser
from lbq_hw.markdown import table

PAGE, FOLDER = "evidence.md", "evidence"
Facts = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of evidence: the command that makes it, and the text for its JSON."""

    name: str
    shows: str
    command: str
    found: Callable[[Facts], str]
    good: Callable[[Facts], bool]


def _proofs(facts: Facts) -> str:
    held = sum(proof["holds"] for proof in facts["proofs"])
    found = sum(proof["planted_bug_found"] for proof in facts["proofs"])
    return f"{held} of {len(facts['proofs'])} hold; {found} planted bugs found"


def _sweep(facts: Facts) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in facts["by_kind"].items())
    return (
        f"{facts['networks']:,} networks ({kinds}) on {facts['shapes']:,} cores, "
        f"{facts['cycles']:,} cycles; {facts['differences']} differences"
    )


def _soak(facts: Facts) -> str:
    return "; ".join(
        f"{run['kind']}: {run['inferences']:,} inferences, {run['wrong']} wrong, memory "
        f"{run['host_growth'] / 1e6:+.1f} MB (host), {run['simulation_growth'] / 1e6:+.1f} MB "
        "(simulation)"
        for run in facts["runs"]
    )


def _noise(facts: Facts) -> str:
    return (
        f"{facts['frames']:,} damaged frames, {facts['answers']:,} answers; {facts['wrong']} "
        f"wrong, {facts['refused']:,} refused, {facts['hangs']} hangs"
    )


def _noise_link(facts: Facts) -> str:
    return (
        f"{facts['frames']:,} damaged frames; {facts['words']:,} words written once and in order, "
        f"{facts['wrong_writes']} wrong; {facts['reads']:,} reads, {facts['wrong_reads']} wrong; "
        f"{facts['refused']:,} refused, {facts['hangs']} hangs"
    )


def _outages(facts: Facts) -> str:
    return (
        f"{facts['deaths']} hosts died, {facts['power_cycles']} power cycles, "
        f"{facts['answers']:,} answers; {facts['wrong']} wrong, {facts['lost']} hosts without "
        "an answer afterwards"
    )


def _mutants(facts: Facts) -> str:
    cores = ", ".join(run["core"] for run in facts["cores"])
    return (
        f"{facts['killed']} of {facts['mutants']} faults found ({cores}), {facts['equivalent']} "
        f"shown to change nothing, {facts['survived']} survived: {100 * facts['score']:.1f} %"
    )


KINDS = (
    Kind(
        name="proofs",
        shows="Contracts of blocks hold for all inputs",
        command="python -m sim.proofs",
        found=_proofs,
        good=lambda facts: facts["proven"],
    ),
    Kind(
        name="sweep",
        shows="Random networks: RTL, golden and cycle model agree",
        command="python -m sim.sweep",
        found=_sweep,
        good=lambda facts: not facts["differences"],
    ),
    Kind(
        name="soak",
        shows="Many inferences in one run of a board",
        command="python -m sim.soak",
        found=_soak,
        good=lambda facts: all(run["good"] for run in facts["runs"]),
    ),
    Kind(
        name="noise",
        shows="Damaged frames on the line",
        command="python -m sim.noise",
        found=_noise,
        good=lambda facts: not facts["wrong"] and not facts["hangs"],
    ),
    Kind(
        name="noise-link",
        shows="Damaged frames on the line of link and UART alone",
        command="python -m sim.noise --link",
        found=_noise_link,
        good=lambda facts: not any(facts[key] for key in ("wrong_reads", "wrong_writes", "hangs")),
    ),
    Kind(
        name="outages",
        shows="Hosts that die, boards that lose their power",
        command="python -m sim.outages",
        found=_outages,
        good=lambda facts: facts["good"],
    ),
    Kind(
        name="mutants",
        shows="Faults planted in the core are found by tests",
        command="python -m sim.mutants",
        found=_mutants,
        good=lambda facts: facts["score"] >= 0.95,
    ),
)
_HEAD = """# Evidence

What was run to show that the core computes what was trained, with the numbers that each command
printed. The table is made from the files in `docs/evidence` by `make evidence`. To repeat a line,
call its command with `--json` and the seed and numbers of the line, and write what it prints to the
file of that name.

"""
_SURVIVORS = """
## Planted faults that nothing finds

[proofs.md](proofs.md#planted-faults) tells how faults are planted. A fault that is shown to change
nothing is not in this table.

"""
_TAIL = """
## What is not proven

* The numbers of the table are all there is: a line with few networks, frames or faults is weak
  evidence.
* [proofs.md](proofs.md) lists the holes of the proofs: bounds, small widths, blocks without a
  contract.
* Sweeps draw small networks, with inputs of 3 to 6 pixels per side and up to five layers. Large
  networks are simulated one by one, in builds.
* A fault in what golden, compiler and core share (`lbq_hw.isa`, `lbq_hw.network`) can escape all of
  these. The tests have a reference that is written from the definition of the arithmetic alone.
* Everything here runs in simulation. No line of it was measured on a board.
"""


def page(docs: Path) -> str:
    """The text of the page."""
    rows = []
    for kind in KINDS:
        path = docs / FOLDER / f"{kind.name}.json"
        if not path.is_file():
            rows.append((kind.shows, "not run yet", "", "", "", f"`{kind.command}`"))
            continue
        facts = json.loads(path.read_text(encoding="utf-8"))
        said = "good" if kind.good(facts) else "NOT GOOD"
        seed = facts.get("seed", "")
        rows.append((kind.shows, kind.found(facts), said, seed, facts["date"], f"`{kind.command}`"))
    headings = ("what", "found", "", "seed", "date", "command")
    return _HEAD + table(headings, rows, words=(0, 1, 2, 4, 5)) + _survivors(docs) + _TAIL


def _survivors(docs: Path) -> str:
    """The planted faults that nothing finds, each with its place and reason."""
    path = docs / FOLDER / "mutants.json"
    runs = json.loads(path.read_text(encoding="utf-8"))["cores"] if path.is_file() else []
    rows = [
        (run["core"], fault["mode"], f"`{_bit(fault)}`", f"`{fault['source']}`",
         fault.get("reason") or "not explained yet")
        for run in runs
        for fault in run.get("faults", ())
        if fault["killed_by"] is None and not fault["equivalent"]
    ]  # fmt: skip
    if not rows:
        return ""
    return _SURVIVORS + table(("core", "fault", "of", "line", "reason"), rows, words=range(5))


def _bit(fault: Facts) -> str:
    return fault.get("wire") or f"{fault['cell']}.{fault['port']}[{fault['bit']}]"


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m tools.evidence",
        description="Write the page on what was proven, from the JSON files beside it.",
    )
    parser.add_argument("docs", type=Path, metavar="DIR", help="the folder docs")
    docs = parser.parse_args(argv).docs
    (docs / PAGE).write_text(page(docs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
