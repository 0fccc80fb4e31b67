"""What looks for the faults of a core: networks, and the repository's tests of that core."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lbq_hw.sim.drawn.memories import random_access
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.sweep.stands import External, OnChip, Stand, Trial

ROOT = Path(__file__).resolve().parents[2]
PROGRAM, CHOSEN = "LBQ_MUTATED", "LBQ_MUTANT"
"""Variables: the folder with mutated programs by core, for ``tests/simulators.py``; the number of
the fault that is switched on, for ``sim/bench.cpp``."""
CORES = ("compact", "standard", "external", "pairs")
NETWORKS = 25
"""That each core runs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Suite:
    """A core, the networks that it runs one after the other, and arguments of pytest."""

    stand: OnChip | External
    trials: tuple[Trial, ...]
    tests: tuple[tuple[str, ...], ...] = ()

    def finds(self, program: Path, fault: int) -> str | None:
        """What fails with a fault, cheapest first, or None; `program` is the build."""
        os.environ[CHOSEN] = str(fault)
        with self.stand.start(program) as core:
            for number, trial in enumerate(self.trials):
                found = self.stand.judge(core, trial).difference
                if found is not None:
                    return f"network {number}: {found}"
        env = os.environ | {PROGRAM: str(program.parent)}
        for selection in self.tests:
            options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
            command = [sys.executable, "-m", "pytest", *options, *selection]
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
            if done.returncode not in (0, 1):
                raise RuntimeError(f"pytest ends with {done.returncode}: {' '.join(command)}")
            if done.returncode:
                return selection[0]
        return None


@cache
def suite(name: str) -> Suite:
    """The suite of one of the `CORES`, which are those of the repository's tests."""
    sys.path.insert(0, str(ROOT / "tests"))
    tests = importlib.import_module("simulators")
    seeds = range(NETWORKS)
    match name:
        case "compact" | "standard":
            config = tests.shared_core(tests.NARROW if name == "compact" else tests.WIDE)
            stand: Stand = OnChip(config=config)
            networks = [tests.digits(), *(tests.drawn(seed, config.lanes) for seed in seeds)]
            errors = ("tests/sim/test_errors.py", "-k", "near")
            more = (errors,) if name == "standard" else ()
        case _:
            shape = 0 if name == "external" else tests.MIXED[0]
            config, memory = tests.external_core(shape)
            stand = External(config=config, memory=memory, access=random_access(shape))
            networks = [tests.external_network(shape, seed) for seed in seeds]
            more = (("tests/sim/test_external.py", "-k", "corrupted or drift or never"),)
            more = more if name == "external" else ()
    trials = [
        Trial(network=network, inputs=random_images(network, 1 + number % 2, number))
        for number, network in enumerate(networks)
    ]
    return Suite(stand=stand, trials=tuple(trials), tests=more)
