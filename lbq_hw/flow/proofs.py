"""The step that a build has only where it is asked for: ``--prove bitstream``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from lbq_hw.flow import families
from lbq_hw.flow.job import FlowError, Job
from lbq_hw.tools import locate, need
from lbq_hw.tools.process import call

_ROUTED = "routed.json"


def prove_bitstream(job: Job, work: Path) -> str:
    """Simulate the bitstream's netlist as a board and compare its logits with the golden model."""
    product = work / "prove.json"
    if locate("verilator") is None:
        return _skip(product, "Verilator is missing: sudo apt install verilator g++")
    # -P: a lbq_hw.py in the current folder is not ours.
    command = [sys.executable, "-P", "-m", "lbq_hw.sim.prove", "--build", str(job.folder)]
    command += ["--board", job.board.spelled, "--images", str(job.options.images)]
    if job.board.family == "ecp5":
        command += ["--routed", str(_route_again(job, work))]
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    log = job.log("prove")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(done.stderr, encoding="utf-8")
    if done.returncode not in (0, 1) or not done.stdout:
        raise FlowError(
            f"the bitstream cannot be simulated; its log is {log}\n{done.stderr.strip()[-1500:]}"
        )
    facts = json.loads(done.stdout)
    if "skipped" in facts:
        return _skip(product, facts["skipped"])
    if not facts["equal"]:
        last = facts["runs"][-1]
        raise FlowError(
            f"the bitstream differs from the golden model with seed {last['seed']}: "
            f"{last['difference']}"
        )
    product.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    what = "bitstream" if job.board.family == "ice40" else "routed netlist"
    return (
        f"the {what} gave equal logits on {facts['images']} images, and from "
        f"{len(facts['runs'])} states of what begins unknown"
    )


def _skip(product: Path, reason: str) -> str:
    product.write_text(json.dumps({"skipped": reason}) + "\n", encoding="utf-8")
    return f"skipped, for {reason}"


def _route_again(job: Job, work: Path) -> Path:
    """The routed netlist, from the same run of the router again: it must give the same bits."""
    family = families.of(job.board)
    placed, constraints = f"placed.{family.placed}", f"top.{family.constraints}"
    for name in ("netlist.json", constraints):
        shutil.copyfile(job.folder / name, work / name)
    arguments = families.place_arguments(
        job.board,
        clock_hz=job.clock_hz,
        seed=job.json("seeds.json")["seed"],
        full=job.config.external > 0,
    )
    log = job.log("prove-place")
    call(need(family.placer), [*arguments, "--write", _ROUTED], folder=work, log=log)
    if (work / placed).read_bytes() != (job.folder / placed).read_bytes():
        raise FlowError("the router gave other bits than before for the same netlist and seed")
    return work / _ROUTED
