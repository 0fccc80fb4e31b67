"""Command line of the proofs: ``python -m sim.proofs``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from lbq_hw.commands import ending
from lbq_hw.commands.arguments import positive
from lbq_hw.commands.parser import Parser
from lbq_hw.markdown import table
from lbq_hw.sim.proofs import every
from lbq_hw.sim.proofs.contract import Proof
from lbq_hw.sim.proofs.solver import Verdict, prove
from lbq_hw.tools import MissingToolError

PROVEN, BROKEN = 0, 1


def markdown(proofs: Sequence[Proof]) -> str:
    """The table of docs/proofs.md."""
    rows = [(f"`{proof.name}`", proof.says, proof.bound) for proof in proofs]
    return table(("proof", "what is proven", "cycles"), rows, words=(0, 1))


def facts(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """One object for JSON."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "proven": all(verdict.good for verdict in verdicts),
        "proofs": [
            {
                "name": verdict.proof.name,
                "says": verdict.proof.says,
                "cycles": verdict.proof.bound,
                "holds": verdict.holds,
                "planted_bug_found": verdict.found,
                "seconds": round(verdict.seconds, 1),
            }
            for verdict in verdicts
        ],
    }


def told(verdict: Verdict) -> str:
    """A line about a proof, with the solver's output if the proof fails."""
    said = "holds" if verdict.holds else "BROKEN"
    said += ", planted bug found" if verdict.found else ", planted bug NOT FOUND"
    line = f"{verdict.proof.name}: {said} ({verdict.seconds:.1f} s)"
    return line if verdict.good else f"{line}\n{verdict.told}"


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m sim.proofs",
        description="Prove contracts of the core's blocks for all inputs, and check that each "
        "proof finds a planted fault. Exit code 1: a contract does not hold, or a "
        "fault is not found.",
    )
    parser.add_argument("name", nargs="*", metavar="PROOF", help="(all)")
    parser.add_argument("--fast", action="store_true", help="only the proofs that CI runs")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, metavar="N",
                        help="proofs at a time (one per processor)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--markdown", action="store_true", help="list the proofs, and prove none")
    args = parser.parse_args(argv)
    known = {proof.name: proof for proof in every()}
    for name in args.name:
        if name not in known:
            parser.error(f"PROOF must be one of {', '.join(known)}, not {name!r}")
    chosen = [proof for proof in known.values() if proof.name in (args.name or known)]
    chosen = [proof for proof in chosen if proof.fast or not args.fast]
    if args.markdown:
        print(markdown(chosen), end="")
        return PROVEN
    console, verdicts = Console(stderr=args.json), []
    try:
        for verdict in prove(chosen, jobs=args.jobs):
            verdicts.append(verdict)
            console.print(told(verdict), markup=False, highlight=False)
    except MissingToolError as error:
        return ending.refuse(error)
    if args.json:
        print(json.dumps(facts(verdicts)))
    else:
        good = sum(verdict.good for verdict in verdicts)
        console.print(f"{good} of {len(verdicts)} contracts are proven, each with its planted bug")
    return PROVEN if all(verdict.good for verdict in verdicts) else BROKEN


if __name__ == "__main__":
    sys.exit(ending.run(main))
