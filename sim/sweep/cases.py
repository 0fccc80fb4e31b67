"""A difference that was found, as files from which a test can reproduce it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lbq_hw import file
from lbq_hw.sim.sweep.stands import Stand, Trial, stand_of
from lbq_hw.sim.verilator import CACHE

_TEST = '''"""{told}"""

from pathlib import Path

from lbq_hw.sim.sweep import cases


def test_the_core_computes_what_golden_does() -> None:
    assert cases.read(Path(__file__).parent).difference() is None
'''


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Networks that a core runs one after the other; the last one differs."""

    stand: Stand
    trials: tuple[Trial, ...]

    def difference(self, program: Path | None = None) -> str | None:
        """The difference on a core that was just started, or None; `program` is its build.

        ValueError for a network that the core cannot run.
        """
        with self.stand.start(program or self.stand.build(CACHE)) as core:
            for trial in self.trials:
                found = self.stand.judge(core, trial).difference
                if found is not None:
                    return found
        return None

    def write(self, folder: Path, told: str) -> None:
        """The files, with a test that pytest runs."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "core.json").write_text(json.dumps(self.stand.facts()), encoding="utf-8")
        for number, trial in enumerate(self.trials):
            file.save(trial.network, folder / f"{number}.lbq")
            np.save(folder / f"{number}.npy", trial.inputs)
        text = _TEST.format(told=told.replace("\\", "").replace('"', "'"))
        (folder / "test_case.py").write_text(text, encoding="utf-8")


def read(folder: Path) -> Case:
    """A case from its files."""
    facts = json.loads((folder / "core.json").read_text(encoding="utf-8"))
    trials = [
        Trial(network=file.load(path), inputs=np.load(path.with_suffix(".npy")))
        for path in sorted(folder.glob("*.lbq"), key=lambda path: int(path.stem))
    ]
    return Case(stand=stand_of(facts), trials=tuple(trials))
