"""Builds Verilog for a simulator and runs a cocotb testbench on it."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from cocotb_tools.runner import get_runner
from find_libpython import find_libpython

from lbq_hw.sim.benches import limit as limiter
from lbq_hw.sim.verilog import SimulatorError
from lbq_hw.tools import COCOTB_VERILATOR, numbers

CACHE = Path("build/cocotb")
LIMIT = 1800.0
"""Limit in seconds of wall-clock time for a testbench: many times what any of them needs alone."""
TIMESCALE = ("1ns", "1ns")
_PROGRAMS = {"icarus": "iverilog", "verilator": "verilator"}
_ARGUMENTS = {"icarus": (), "verilator": ("-Wno-fatal", "-Wno-lint", "-O3", "--output-split", "0")}
_WAVES = {"icarus": (), "verilator": ("--trace-fst",)}

_BARE = re.compile(r"always @\*\n(?!\s*begin)")
_TRIGGER = re.compile(r"^(  reg (\S+) ) = 0;$", re.MULTILINE)

# Failures are told by exceptions; the rest that cocotb prints is not needed.
for _name in ("Icarus", "Verilator"):
    logging.getLogger(_name).disabled = True


@dataclass(frozen=True, kw_only=True)
class Design:
    """A compiled design: its folder, top module, simulator, and whether it can write waves."""

    folder: Path
    top: str
    simulator: str
    waves: bool


@dataclass(frozen=True, kw_only=True)
class Run:
    """The results of a testbench's tests: all names, the texts of failures by name, and the seconds
    that each test took.
    """

    tests: tuple[str, ...]
    failures: Mapping[str, str]
    seconds: Mapping[str, float]


@cache
def missing(simulator: str) -> str | None:
    """The reason why a simulator cannot run testbenches; None if it can."""
    program = _PROGRAMS[simulator]
    if shutil.which(program) is None:
        return f"{program} is missing: sudo apt install {program}"
    if find_libpython() is None:
        return "Python's shared library is missing: sudo apt install python3-dev"
    if simulator == "verilator":
        version = _verilator_version()
        if version is None or numbers(version) < numbers(COCOTB_VERILATOR):
            found = version or "an unknown version"
            return f"cocotb needs verilator {COCOTB_VERILATOR} or newer, not {found}"
    return None


def _verilator_version() -> str | None:
    """Verilator's version, from its output or from its headers: a CMake build, as in the wheel,
    prints none.
    """
    version = re.search(r"\b\d+\.\d+", _tell("--version"))
    if version is None:
        root = Path(_tell("--getenv", "VERILATOR_ROOT").strip())
        header = root / "include" / "verilated_config.h"
        text = header.read_text(encoding="utf-8") if header.is_file() else ""
        version = re.search(r'(?<=VERILATOR_VERSION ")\d+\.\d+', text)
    return None if version is None else version[0]


def _tell(*arguments: str) -> str:
    """The output of Verilator."""
    command = [_PROGRAMS["verilator"], *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def awake(text: str) -> str:
    """Verilog of Yosys, changed so that all processes run at the start, in Icarus too.

    An `always @*` first runs when an input changes; until then its output is X. Those of several
    statements have an input for that, which must change when all of them wait. As an `always_comb`
    they would look at all bits of all inputs, and take twice as long.
    """
    return _TRIGGER.sub(r"\1;\n  initial \2 <= 0;", _BARE.sub("always_comb\n", text))


def compile_design(
    text: str, *, top: str, simulator: str = "icarus", waves: bool = False, cache: Path = CACHE
) -> Design:
    """Compile Verilog; a build of the same text is used again."""
    if (reason := missing(simulator)) is not None:
        raise SimulatorError(reason)
    if simulator == "icarus":
        text = awake(text)
    arguments = (*_ARGUMENTS[simulator], *(_WAVES[simulator] if waves else ()))
    parts = (text, top, simulator, str(waves), *arguments)
    folder = cache / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    design = Design(folder=folder.resolve(), top=top, simulator=simulator, waves=waves)
    if folder.is_dir():
        return design
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        work = Path(temporary).resolve()
        source, log = work / f"{top}.v", work / "build.log"
        source.write_text(text, encoding="utf-8")
        try:
            get_runner(simulator).build(
                sources=[source],
                hdl_toplevel=top,
                build_dir=work / "built",
                build_args=arguments,
                timescale=TIMESCALE,
                waves=waves,
                log_file=log,
            )
        except (RuntimeError, SystemExit) as error:
            told = log.read_text(encoding="utf-8")[-2000:] if log.is_file() else str(error)
            raise SimulatorError(f"{simulator} does not build {top}:\n{told}") from None
        try:
            (work / "built").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
    return design


def simulate(
    design: Design,
    module: str,
    *,
    seed: int = 1,
    variables: Mapping[str, str] | None = None,
    waves: Path | None = None,
    limit: float = LIMIT,
) -> Run:
    """Run all tests of a testbench; failures are in the result, a simulator that crashes raises an
    exception.

    `waves` gets an FST file. A run that takes `limit` seconds is killed, and raises.
    """
    if not limit > 0:
        raise ValueError(f"limit must be a positive number of seconds, not {limit!r}")
    with tempfile.TemporaryDirectory(prefix="cocotb-") as temporary:
        work = Path(temporary).resolve()
        results, log = work / "results.xml", work / "sim.log"
        options: dict[str, Any] = {}
        if waves is not None and design.simulator == "icarus":
            options = {"plusargs": [f"+dumpfile_path={waves.resolve()}"]}
        elif waves is not None:
            options = {"test_args": ["--trace-file", str(waves.resolve())]}
        variables = {limiter.VARIABLE: str(limit), **(variables or {})}
        runner = get_runner(design.simulator)
        began = time.monotonic()
        # It may or may not raise an exception when a test fails: only the results count.
        with contextlib.suppress(RuntimeError, SystemExit):
            runner.test(
                test_module=[limiter.__name__, module],
                hdl_toplevel=design.top,
                hdl_toplevel_lang="verilog",
                build_dir=design.folder,
                test_dir=work,
                results_xml=str(results),
                seed=seed,
                extra_env={"COCOTB_ANSI_OUTPUT": "0", **variables},
                waves=waves is not None,
                log_file=log,
                **options,
            )
        if time.monotonic() - began >= limit:
            raise SimulatorError(f"{design.simulator} did not finish {module} within {limit:g} s")
        # A module that cannot be imported leaves no results, or results without a test.
        run = _read(results) if results.is_file() else Run(tests=(), failures={}, seconds={})
        if not run.tests:
            told = log.read_text(encoding="utf-8", errors="replace")[-3000:]
            raise SimulatorError(f"{design.simulator} ran no test of {module}:\n{told}")
        return run


def _read(results: Path) -> Run:
    tests: list[str] = []
    failures: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        name = case.get("name", "")
        tests.append(name)
        seconds[name] = float(case.get("time") or 0.0)
        for kind in ("failure", "error"):
            for found in case.iter(kind):
                failures[name] = found.get("message") or found.text or kind
    return Run(tests=tuple(tests), failures=failures, seconds=seconds)
