"""Faults planted in the core, and how many of them tests find: ``python -m lbq_hw.sim.mutants``.

Yosys draws the faults in the core's own netlist: a bit of a cell's port is inverted, stuck or bound
to another. Initial values are left as they are. All faults are in one build, and one of them at a
time is switched on. A fault is killed if one of the repository's tests of that core fails.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from amaranth.back import rtlil

from lbq_hw.commands.arguments import positive
from lbq_hw.commands.parser import Parser
from lbq_hw.commands.progress import image_bar
from lbq_hw.config import CoreConfig
from lbq_hw.core.accelerator import accelerator
from lbq_hw.core.fabric.contracts import UNCHECKED
from lbq_hw.sim.verilator import BENCH, CACHE, TOP, build_bench
from lbq_hw.sim.verilog import ports
from lbq_hw.tools import need
from lbq_hw.tools.process import call

ROOT = Path(__file__).resolve().parent.parent
PROGRAM, CHOSEN = "LBQ_MUTATED", "LBQ_MUTANT"
"""Variables: the folder with mutated programs by core, for ``tests/simulators.py``; the number of
the fault that is switched on, for ``sim/bench.cpp``."""
CORES = {"compact": "NARROW", "standard": "WIDE"}
NETWORKS = "tests/sim/test_core.py::test_random_networks_are_bit_exact[{shape}-{first}]"
ERRORS = ("tests/sim/test_errors.py", "-k", "near")
"""Tests of a core, of which those of errors have one core alone."""
_FAULT = re.compile(r"-mode (\S+) .*?-cell (\S+) -port (\S+) -portbit (\d+)(?:.*?-src (\S+))?")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A mutation, and the test file that found it."""

    number: int
    mode: str
    cell: str
    port: str
    bit: int
    source: str
    killed_by: str | None = None


def plant(config: CoreConfig, *, count: int, seed: int) -> tuple[str, list[Fault]]:
    """The core as Verilog with an input ``mutant``, and the faults that it can choose from 1 on."""
    core = accelerator(config)(config)
    text = rtlil.convert(core, name=TOP, ports=ports(core), platform=UNCHECKED)
    width = count.bit_length()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "core.il").write_text(text, encoding="utf-8")
        script = (
            f"read_rtlil core.il; hierarchy -top {TOP}; flatten; proc; opt_clean; "
            f"mutate -list {count} -seed {seed} -ctrl mutant {width} 1 -o faults.ys "
            "t:* t:$meminit* %d t:$scopeinfo %d; "
            "script faults.ys; opt_clean; write_verilog -noattr core.v"
        )
        call(need("yosys"), ["-q", "-p", script], folder=folder, log=folder / "log")
        lines = (folder / "faults.ys").read_text(encoding="utf-8").splitlines()
        return (folder / "core.v").read_text(encoding="utf-8"), [*_faults(lines)]


def _faults(lines: Sequence[str]) -> Iterator[Fault]:
    for number, line in enumerate(lines, 1):
        found = _FAULT.search(line)
        assert found is not None, line
        mode, cell, port, bit, source = found.groups()
        yield Fault(
            number=number,
            mode=mode,
            cell=cell,
            port=port,
            bit=int(bit),
            source=(source or "").removeprefix(f"{ROOT}/"),
        )


def checks(name: str, shape: tuple[int, ...]) -> Iterator[Sequence[str]]:
    """Arguments of pytest for the tests of a core, cheapest first."""
    for first in range(0, 25, 5):
        yield [NETWORKS.format(shape=shape, first=first)]
    if name == "WIDE":
        yield ERRORS


def run(tests: Iterable[Sequence[str]], programs: Path, fault: int) -> str | None:
    """The first tests that fail with a fault, or None."""
    env = os.environ | {PROGRAM: str(programs), CHOSEN: str(fault)}
    for selection in tests:
        options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *options, *selection]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"pytest ends with {done.returncode}: {' '.join(command)}")
        if done.returncode:
            return selection[0]
    return None


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m lbq_hw.sim.mutants",
        description="Plant faults in the core and count those that the repository's tests find.",
        epilog="A fault that survives is equivalent, or a test is missing: its cell tells where.",
    )
    parser.add_argument("--count", type=positive, default=60, metavar="N", help="faults (60)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the choice (1)")
    parser.add_argument("--core", choices=CORES, default="standard", help="profile (standard)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    args = parser.parse_args(argv)
    if not (ROOT / "tests" / "simulators.py").is_file():
        parser.error("the tests are missing: call it in a clone of the repository")
    sys.path.insert(0, str(ROOT / "tests"))
    simulators = importlib.import_module("simulators")

    name = CORES[args.core]
    shape = getattr(simulators, name)
    config = simulators.shared_core(shape)
    text, faults = plant(config, count=args.count, seed=args.seed)
    with tempfile.TemporaryDirectory() as folder:
        programs = Path(folder)
        program = build_bench(text, BENCH, top=TOP, cache=ROOT / CACHE)
        (programs / config.digest).symlink_to(program.resolve())
        if (broken := run(checks(name, shape), programs, 0)) is not None:
            raise SystemExit(f"error: {broken} fails without a fault")
        with image_bar() as bar:
            task = bar.add_task("faults", total=len(faults))
            for i, fault in enumerate(faults):
                found = run(checks(name, shape), programs, fault.number)
                faults[i] = replace(fault, killed_by=found)
                bar.advance(task)
    survived = [fault for fault in faults if fault.killed_by is None]
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        "seed": args.seed,
        "core": args.core,
        "mutants": len(faults),
        "killed": len(faults) - len(survived),
        "survived": len(survived),
        "score": 1 - len(survived) / len(faults),
        "faults": [asdict(fault) for fault in faults],
    }
    if args.json:
        print(json.dumps(facts))
        return 0
    print(f"{facts['killed']} of {facts['mutants']} faults are found: {100 * facts['score']:.1f} %")
    for fault in survived:
        print(f"  {fault.mode} of {fault.cell}.{fault.port}[{fault.bit}] {fault.source}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
