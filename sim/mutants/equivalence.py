"""Whether a fault can be seen at all: a solver compares a core with it and without.

Both start a cycle in the same state, any state, with the same inputs. If they always give the same
outputs and end in the same state, the fault changes nothing. One that changes only what happens in
states that no program reaches is not shown equivalent.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lbq_hw.sim.mutants.faults import INPUT, Fault, flat, run
from lbq_hw.sim.sweep.stands import Stand
from lbq_hw.sim.verilator import TOP

LIMIT = 60
"""Seconds for the question about a fault."""
_WRITE = ("memory_collect", "memory_nordff", "async2sync", "dffunmap", "opt_clean")
_STATE = re.compile(rf"^\(declare-datatype \|{TOP}_s\| \(\(\|{TOP}_mk\|\n(.*?)^\)\)\)", re.M | re.S)
_FIELD = re.compile(r"^  \(\|.+?\| (.+)\)(?: ; (.*))?$", re.MULTILINE)
_NEXT = re.compile(r"^  \(= (.+) \(\|[^|]+\| next_state\)\)", re.MULTILINE)
_OUTPUT = re.compile(r"^; yosys-smt2-output (\S+) \d+$", re.MULTILINE)


def equivalent(stand: Stand, faults: Sequence[Fault]) -> Iterator[bool]:
    """Of each fault of a core, whether it is shown to change nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = [*flat(stand, folder), "design -save flat"]
        for fault in faults:
            formula = f"write_smt2 -stdt -wires {fault.number}.smt2"
            script += ["design -load flat", fault.alone(), *_WRITE, formula]
        run(script, folder)
        for fault in faults:
            asked = folder / f"{fault.number}.smt2"
            formula = asked.read_text(encoding="utf-8")
            asked.write_text(formula + question(formula), encoding="utf-8")
            yield _answer(asked) == "unsat"


def question(formula: str) -> str:
    """Is there a cycle in which a core differs with a fault and without?"""
    described = _STATE.search(formula)
    assert described is not None
    lines, same, other = [], ["true"], ["true"]
    [_, *fields] = _FIELD.findall(described[1])  # the first tells whether it is a start
    for number, (sort, name) in enumerate(fields):
        if name == f"\\{INPUT}":
            same.append("false")
            other.append("true")
            continue
        lines.append(f"(declare-const x{number} {sort})")
        same.append(f"x{number}")
        other.append(f"x{number}")
    lines += [
        f"(define-const {one} |{TOP}_s| (|{TOP}_mk| {' '.join(values)}))"
        for one, values in (("without", same), ("with", other))
    ]
    seen = [f"(|{TOP}_n {name}| state)" for name in _OUTPUT.findall(formula)]
    seen += _NEXT.findall(formula)
    equal = (
        f"(= {each.replace(' state)', ' without)')} {each.replace(' state)', ' with)')})"
        for each in seen
    )
    return "\n".join([*lines, "(assert (not (and", *equal, ")))", "(check-sat)", ""])


def _answer(asked: Path) -> str:
    """What Z3 says; nothing where it has no answer in time."""
    solver = Path(sys.executable).parent / "z3"
    command = [str(solver), f"-T:{LIMIT}", str(asked)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
