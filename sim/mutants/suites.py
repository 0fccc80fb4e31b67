"""What looks for the faults of a core: networks, and the repository's tests of that core."""

from __future__ import annotations

import importlib
import math
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lbq_hw.host.transport import DeviceError
from lbq_hw.network import Network
from lbq_hw.sim.drawn.memories import random_access
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.mutants.made import deep_network, edge_network, large_network, lonely_network
from lbq_hw.sim.mutants.strong import scaled, sparse, widened
from lbq_hw.sim.mutants.trials import rehearse
from lbq_hw.sim.sweep.stands import External, OnChip, Trial
from lbq_hw.sim.verilog import SimulatorError

ROOT = Path(__file__).resolve().parents[2]
PROGRAM, CHOSEN = "LBQ_MUTATED", "LBQ_MUTANT"
"""Variables: the folder with mutated programs by core, for ``tests/simulators.py``; the number of
the fault that is switched on, for ``sim/bench.cpp``."""
CORES = ("compact", "standard", "external", "pairs")
NETWORKS, WIDE, SCALED, SPARSE = 25, 8, 20, 8
"""Networks that each core runs, and how many of them it also runs changed."""
_OWN = ("suites", "trials", "strong", "made")
SPECIAL = {edge_network: 12, lonely_network: 4, deep_network: 4, large_network: 12}
"""Networks that are made for a core."""


class Search(ABC):
    """A way to find faults in a core."""

    sources: tuple[Path, ...]
    """Files on which it depends what is found."""

    @abstractmethod
    def finds(self, program: Path, fault: int) -> str | None:
        """What fails with a fault, or None; `program` is the build."""


class Networks(Search):
    """Networks that a core runs one after the other."""

    sources = tuple(Path(__file__).with_name(f"{name}.py") for name in _OWN)

    def __init__(self, stand: OnChip | External, networks: Sequence[Network]):
        self._stand = stand
        self._trials = [
            rehearse(stand, Trial(network=one, inputs=random_images(one, 1 + number % 2, number)))
            for number, one in enumerate(networks)
        ]

    def finds(self, program: Path, fault: int) -> str | None:
        os.environ[CHOSEN] = str(fault)
        with self._stand.start(program) as core:
            for number, trial in enumerate(self._trials):
                try:
                    found = trial.difference(core)
                except (DeviceError, SimulatorError) as error:
                    found = str(error)
                if found is not None:
                    return f"network {number}: {found}"
        return None


class Tests(Search):
    """Tests of the repository, as arguments of pytest."""

    def __init__(self, selections: Sequence[tuple[str, ...]]):
        self._selections = selections
        self.sources = tuple(ROOT / selection[0] for selection in selections)

    def finds(self, program: Path, fault: int) -> str | None:
        env = os.environ | {CHOSEN: str(fault), PROGRAM: str(program.parent)}
        for selection in self._selections:
            options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
            command = [sys.executable, "-m", "pytest", *options, *selection]
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
            if done.returncode not in (0, 1):
                raise RuntimeError(f"pytest ends with {done.returncode}: {' '.join(command)}")
            if done.returncode:
                return selection[0]
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class Suite:
    """A core, and the searches for its faults, cheapest first."""

    name: str
    stand: OnChip | External
    searches: tuple[Search, ...]


@cache
def suite(name: str) -> Suite:
    """The suite of one of the `CORES`, which are those of the repository's tests."""
    sys.path.insert(0, str(ROOT / "tests"))
    tests = importlib.import_module("simulators")
    match name:
        case "compact" | "standard":
            config = tests.shared_core(tests.NARROW if name == "compact" else tests.WIDE)
            stand: OnChip | External = OnChip(config=config)
            networks = [tests.drawn(seed, config.lanes) for seed in range(NETWORKS)]
            whole = [tests.digits()]
            walks = ("tests/sim/test_walks.py", "-k", "narrow" if name == "compact" else "wide")
            more = (walks, ("tests/sim/test_errors.py", "-k", name))
        case _:
            shape = 0 if name == "external" else tests.MIXED[0]
            config, memory = tests.external_core(shape)
            stand = External(config=config, memory=memory, access=random_access(shape))
            networks = [tests.external_network(shape, seed) for seed in range(NETWORKS)]
            whole = []
            port = "tests/sim/test_external_port.py"
            words = ("tests/sim/test_external.py", "-k", "corrupted or drift or never")
            more = ((port, "-k", "single"), words) if name == "external" else ((port, "-k", name),)
    whole += [widened(network, config, seed) for seed, network in enumerate(networks[:WIDE])]
    whole += [scaled(network, config, seed) for seed, network in enumerate(networks[:SCALED])]
    whole += [sparse(network, config, seed) for seed, network in enumerate(_largest(networks))]
    whole += [make(config, seed) for make, count in SPECIAL.items() for seed in range(count)]
    return Suite(name=name, stand=stand, searches=(Networks(stand, networks + whole), Tests(more)))


def _largest(networks: Sequence[Network]) -> Sequence[Network]:
    """Those with the most neurons."""

    def neurons(network: Network) -> int:
        return sum(math.prod(layer.output_shape) for layer in network.layers[:-1])

    return sorted(networks, key=neurons)[-SPARSE:]
