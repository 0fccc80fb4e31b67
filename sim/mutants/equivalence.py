"""Whether a fault can be seen at all: a solver compares a core with it and without.

Both get the same inputs. Two arguments are tried:

* Both start a cycle in the same state, any state in which registers that are always 0 are 0. If
  they then always give the same outputs and end in the same state, the fault changes nothing.
* Some registers may differ, all other state may not. If this holds for `STEPS` cycles in a row, and
  then always for another one, and outputs never differ, then it holds forever: induction over
  cycles, from a common state on. The registers are those that the solver finds to differ. An
  example is a register that is loaded at wrong times, too, but used after right ones only.

A fault that changes only what happens in states that no program reaches is not shown equivalent.

The chip of an external memory, and registers that sample its pads at the falling edge, stand
outside: what they get is compared, and what they give is the same for both, and anything.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lbq_hw.sim.mutants.faults import INPUT, Fault, flat, run
from lbq_hw.sim.sweep.stands import Stand
from lbq_hw.sim.verilator import TOP

SECONDS = 60
"""Of a processor, for one question to the solver."""
STEPS = 2
QUESTIONS = 8
"""At most, about one fault."""
_OUTSIDE = (
    "chtype -set falling t:$dff r:CLK_POLARITY=0 %i",
    "autoname t:falling",
    "hierarchy -generate falling o:Q i:*",
    "hierarchy -generate sdram o:dq_o o:violated i:*",
    f"expose -evert {TOP}/t:falling {TOP}/t:sdram",
)
_WRITE = ("memory_collect", "memory_nordff", "async2sync", "dffunmap", "opt_clean")
_STATE = re.compile(rf"^\(declare-datatype \|{TOP}_s\| \(\(\|{TOP}_mk\|\n(.*?)^\)\)\)", re.M | re.S)
_FIELD = re.compile(r"^  \(\|(.+?)\| (.+)\)(?: ; (.*))?$", re.MULTILINE)
_NEXT = re.compile(r"^  \(= (.+) \(\|([^|]+)\| next_state\)\)", re.MULTILINE)
_OUTPUT = re.compile(r"^; yosys-smt2-output (\S+) \d+$", re.MULTILINE)


def equivalent(stand: Stand, faults: Sequence[Fault], *, workers: int) -> Iterator[bool]:
    """Of each fault of a core, whether it is shown to change nothing; solvers run side by side."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = [*flat(stand, folder), "design -save flat"]
        for fault in faults:
            formula = f"write_smt2 -stdt -wires {fault.number}.smt2"
            script += ["design -load flat", fault.alone(), *_OUTSIDE, *_WRITE, formula]
        run(script, folder)

        first = Pair(folder / f"{faults[0].number}.smt2") if faults else None

        def is_equal(fault: Fault) -> bool:
            pair = Pair(folder / f"{fault.number}.smt2", like=first)
            # The formula has one clock, whatever is done to the clock of a register.
            return fault.port != "CLK" and pair.is_equal()

        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(is_equal, faults)


@dataclass(frozen=True)
class Field:
    """A part of a core's state: a register or memory with its next value, or an input without."""

    key: str
    sort: str
    name: str
    following: str | None

    @property
    def is_memory(self) -> bool:
        return self.sort.startswith("(Array")

    @property
    def is_bit(self) -> bool:
        return self.sort in ("Bool", "(_ BitVec 1)")

    def bit(self, *, value: bool) -> str:
        """A value of a field of one bit, which Yosys describes in either of two ways."""
        return str(value).lower() if self.sort == "Bool" else f"#b{value:d}"


@dataclass(frozen=True)
class Pair:
    """A core with a fault and without, as Yosys describes both in one formula for a solver.

    `like` is the same core with another fault. A register that is not silent there is not tried.
    """

    path: Path
    like: Pair | None = None

    @cached_property
    def formula(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        described = _STATE.search(self.formula)
        assert described is not None
        following = {key: value for value, key in _NEXT.findall(self.formula)}
        [_, *fields] = _FIELD.findall(described[1])  # the first tells whether it is a start
        return tuple(Field(key, sort, name, following.get(key)) for key, sort, name in fields)

    @cached_property
    def silent(self) -> set[str]:
        """Registers of one bit that are 0 after a reset, and then forever, also with the fault: by
        induction, in which more and more registers may be 1.
        """
        resets = [field.key for field in self.fields if field.name == "\\rst"]
        loud = self.like.loud if self.like else set[str]()
        kept = [field for field in self.bits if field.name not in loud] if resets else []
        while kept:
            ones = [f"(not (= {field.following} {field.bit(value=False)}))" for field in kept]
            lines = [f"(declare-const {state} |{TOP}_s|)" for state in ("reset", "later")]
            lines += [f"(assert (= (|{key}| reset) true))" for key in resets]
            lines += [
                f"(assert (= (|{field.key}| later) {field.bit(value=False)}))" for field in kept
            ]
            either = [f"(or {_at(one, 'reset')} {_at(one, 'later')})" for one in ones]
            found = self._true(lines, either)
            if not found:
                return set() if found is None else {field.key for field in kept}
            kept = [field for number, field in enumerate(kept) if number not in found]
        return set()

    @property
    def bits(self) -> list[Field]:
        """Registers of one bit."""
        return [field for field in self.fields if field.following and field.is_bit]

    @cached_property
    def loud(self) -> set[str]:
        """Names of registers of one bit that are not silent."""
        return {field.name for field in self.bits if field.name and field.key not in self.silent}

    def is_equal(self) -> bool:
        """Whether the fault is shown to change nothing."""
        loose: set[str] = set()  # registers that may differ
        registers = {field.key for field in self.fields if not field.is_memory}
        steps = 1
        for _ in range(QUESTIONS):
            found = self._differing(loose, steps)
            if found is None:
                return False
            if not found:
                return steps == 1 or self._differing(loose, steps - 1, start=True) == set()
            if found <= registers:
                loose |= found
            elif loose and steps < STEPS:
                steps += 1
            else:
                return False
        return False

    def _differing(self, loose: set[str], steps: int, *, start: bool = False) -> set[str] | None:
        """What may differ, after some steps in which only the `loose` registers did: outputs in the
        last one, and what is not loose after it. With `start`, all is equal before the first step,
        and each step counts. None if the solver does not know.
        """
        lines = self._states("a0", fault=False)
        lines += self._states("b0", fault=True, apart=set() if start else loose, like="a0")
        names, differing = [], []
        for step in range(steps):
            a, b = f"a{step}", f"b{step}"
            if start or step == steps - 1:
                for output in _OUTPUT.findall(self.formula):
                    names.append(output)
                    differing.append(_unequal(f"(|{TOP}_n {output}| state)", a, b))
                for field in self.fields:
                    if field.following and field.key not in loose:
                        names.append(field.key)
                        differing.append(_unequal(field.following, a, b))
            same = set() if start else {field.key for field in self.fields} - loose
            lines += self._successor(a, f"a{step + 1}", fault=False)
            lines += self._successor(b, f"b{step + 1}", fault=True, same=same, like=f"a{step + 1}")
        found = self._true(lines, differing)
        return None if found is None else {names[number] for number in found}

    def _true(self, lines: Sequence[str], claims: Sequence[str]) -> set[int] | None:
        """Some of the claims that can be true together, none if no claim ever is; None if the
        solver does not know.
        """
        lines = [*lines, *(f"(define-const d{i} Bool {each})" for i, each in enumerate(claims))]
        every = " ".join(f"d{i}" for i in range(len(claims)))
        said = self._ask([*lines, f"(assert (or {every}))"], f"(get-value ({every}))")
        if said.startswith("unsat"):
            return set()
        return {int(number) for number in re.findall(r"\(d(\d+) true\)", said)} or None

    def _states(
        self, state: str, *, fault: bool, apart: set[str] | None = None, like: str = ""
    ) -> list[str]:
        """Define any state; or one that is `like` another, but for the registers `apart`."""
        lines, values = [], ["true"]
        for number, field in enumerate(self.fields):
            if field.name == f"\\{INPUT}":
                values.append(field.bit(value=fault))
            elif field.key in self.silent:
                values.append(field.bit(value=False))
            elif apart is None or field.key in apart:
                lines.append(f"(declare-const {state}_{number} {field.sort})")
                values.append(f"{state}_{number}")
            else:
                values.append(f"(|{field.key}| {like})")
        return [*lines, _defined(state, values)]

    def _successor(
        self,
        before: str,
        state: str,
        *,
        fault: bool,
        same: set[str] | None = None,
        like: str = "",
    ) -> list[str]:
        """Define the state after another one, with any inputs; or with those of the state `like`,
        and what is the `same` as there.
        """
        lines, values = [], ["true"]
        for number, field in enumerate(self.fields):
            if field.name == f"\\{INPUT}":
                values.append(field.bit(value=fault))
            elif same is not None and (field.key in same or field.following is None):
                values.append(f"(|{field.key}| {like})")
            elif field.following is None:
                lines.append(f"(declare-const {state}_{number} {field.sort})")
                values.append(f"{state}_{number}")
            else:
                values.append(_at(field.following, before))
        return [*lines, _defined(state, values)]

    def _ask(self, lines: Sequence[str], more: str = "") -> str:
        """What Z3 says; nothing where it has no answer in time."""
        asked = self.path.with_suffix(".asked")
        text = "\n".join((*lines, "(check-sat)", more, ""))
        asked.write_text(self.formula + text, encoding="utf-8")
        solver = Path(sys.executable).parent / "z3"
        limited = ["sh", "-c", f'ulimit -t {SECONDS}; exec "$@"', "sh", str(solver), str(asked)]
        said = subprocess.run(limited, capture_output=True, text=True, check=False).stdout.strip()
        if said and said.split()[0] not in ("sat", "unsat", "unknown", "timeout"):
            raise RuntimeError(f"{asked}: {said}")
        return said


def _defined(state: str, values: Sequence[str]) -> str:
    return f"(define-const {state} |{TOP}_s| (|{TOP}_mk| {' '.join(values)}))"


def _at(value: str, state: str) -> str:
    return value.replace(" state)", f" {state})")


def _unequal(value: str, one: str, other: str) -> str:
    return f"(not (= {_at(value, one)} {_at(value, other)}))"
