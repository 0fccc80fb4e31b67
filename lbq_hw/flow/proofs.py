"""The optional step of a build: ``--prove bitstream``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from lbq_hw import units
from lbq_hw.flow.job import FlowError, Job
from lbq_hw.tools import locate


def prove_bitstream(job: Job, work: Path) -> str:
    """Simulate the bitstream's netlist as a board and compare its logits with the golden model."""
    product = work / "prove.json"
    if locate("verilator") is None:
        return _skip(product, "Verilator is missing: sudo apt install verilator g++")
    # -P: a lbq_hw.py in the current folder is not ours.
    command = [sys.executable, "-P", "-m", "lbq_hw.sim.prove", "--build", str(job.folder)]
    command += ["--board", job.board.spelled, "--images", str(job.options.images)]
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
    *drawn, last = facts["runs"]
    if not facts["equal"]:
        raise FlowError(
            f"the bitstream differs from the golden model ({last['simulator']}): "
            f"{last['difference']}"
        )
    product.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    kept = (
        f"not in four states, because {last['skipped']}" if "skipped" in last else "in four states"
    )
    return (
        f"the bitstream gave equal logits on {units.images(facts['images'])}, from {len(drawn)} "
        f"states of what begins unknown, and {kept}"
    )


def _skip(product: Path, reason: str) -> str:
    product.write_text(json.dumps({"skipped": reason}) + "\n", encoding="utf-8")
    return f"skipped, for {reason}"
