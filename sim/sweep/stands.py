"""Cores of every kind, with their checks.

A `Stand` is a core with its environment, such as an external memory. It runs a `Trial`, a network
with its inputs, and compares every level and logit with golden, and every cycle count with the
cycle model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from amaranth.lib import wiring
from numpy.typing import NDArray

from lbq_hw import golden
from lbq_hw.chips import Chip
from lbq_hw.compiler import compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.core.streaming.accelerator import StreamAccelerator
from lbq_hw.cycles import predict
from lbq_hw.host.streaming import StreamDevice
from lbq_hw.host.transport import DeviceError
from lbq_hw.network import Network
from lbq_hw.sim import streams, verilator
from lbq_hw.sim.check import Outcome, check
from lbq_hw.sim.drawn.streams import compiled
from lbq_hw.sim.sdram import MODEL
from lbq_hw.sim.verilator import BENCH, TOP, Verilated
from lbq_hw.sim.verilog import SimulatorError, convert_large
from lbq_hw.sim.with_memory import Memory
from lbq_hw.streaming.config import StreamConfig


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A network and its raw inputs: images, or the frames ``(steps, C, H, W)`` of a recording."""

    network: Network
    inputs: NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of a trial: the first difference, if there is one, and the cycles of the core."""

    difference: str | None
    cycles: int


class Stand(ABC):
    """A core with its environment."""

    kind: ClassVar[str]

    @abstractmethod
    def design(self) -> wiring.Component:
        """The core, with the memory chip at its pins if it has one."""

    def models(self) -> str:
        """Verilog models of its environment."""
        return ""

    @abstractmethod
    def compare(self, core: Verilated, trial: Trial) -> Verdict:
        """Run a trial; ValueError for a network that the core cannot run."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The facts from which `stand_of` makes it again; JSON-able."""

    def build(self, cache: Path) -> Path:
        """The simulation's program."""
        text = convert_large(self.design(), name=TOP) + self.models()
        return verilator.build_bench(text, BENCH, top=TOP, cache=cache)

    def start(self, program: Path) -> Verilated:
        """A running core."""
        return Verilated(program)

    def judge(self, core: Verilated, trial: Trial) -> Verdict:
        """As `compare`, but an error of the core counts as a difference too."""
        try:
            return self.compare(core, trial)
        except (DeviceError, SimulatorError) as error:
            return Verdict(difference=str(error), cycles=0)


@dataclass(frozen=True, kw_only=True)
class OnChip(Stand):
    """A core whose program is in its own memories."""

    kind = "on-chip"
    config: CoreConfig

    def design(self) -> wiring.Component:
        return verilator.design(self.config)

    def facts(self) -> dict[str, Any]:
        return {"kind": self.kind, "config": asdict(self.config)}

    def compare(self, core: Verilated, trial: Trial) -> Verdict:
        network, images = trial.network, trial.inputs
        program = compile_network(network, self.config)
        outcome = check(network, program, core, images)
        if outcome.difference is not None:
            return Verdict(difference=str(outcome.difference), cycles=outcome.simulated)
        levels = golden.run(network, images, keep="levels")
        predicted = [
            predict(program, image, levels.emitted(number)) for number, image in enumerate(images)
        ]
        found = next(_late(outcome, predicted), None)
        return Verdict(difference=found, cycles=outcome.simulated)


def _late(outcome: Outcome, predicted: Any) -> Iterator[str]:
    """A sentence for each count of a core, summed over images, that differs from the model."""
    counted = {
        "cycles": outcome.layer_cycles,
        "events": outcome.layer_events,
        "null_events": outcome.layer_nulls,
    }
    for index, info in enumerate(outcome.program.info):
        for name, values in counted.items():
            wanted = sum(getattr(layers[index], name) for layers in predicted)
            if wanted != values[index]:
                yield f"layer {info.name!r}: {name} {wanted} predicted, {values[index]} counted"
    wanted = sum(layer.cycles for layers in predicted for layer in layers)
    if wanted != outcome.cycles:
        yield f"all layers: cycles {wanted} predicted, {outcome.cycles} counted"


@dataclass(frozen=True, kw_only=True)
class External(Stand):
    """A core that reads its program from an SDRAM with an access time of `access` ps."""

    kind = "external"
    config: CoreConfig
    memory: Memory
    access: int

    def design(self) -> wiring.Component:
        return verilator.design(self.config, self.memory)

    def models(self) -> str:
        return MODEL.read_text(encoding="utf-8")

    def facts(self) -> dict[str, Any]:
        memory = {"chip": asdict(self.memory.chip), "clock_hz": self.memory.clock_hz}
        facts = {"kind": self.kind, "config": asdict(self.config)}
        return facts | {"memory": memory, "access": self.access}

    def start(self, program: Path) -> Verilated:
        return Verilated(program, options=[f"+sdram_access={self.access}"])

    def compare(self, core: Verilated, trial: Trial) -> Verdict:
        timing = self.memory.timing
        program = compile_network(trial.network, self.config, timing=timing)
        if len(program.tape) > self.memory.chip.tape_bytes:
            raise ValueError("the tape is longer than the memory")
        outcome = check(trial.network, program, core, trial.inputs, timing=timing)
        found = None if outcome.difference is None else str(outcome.difference)
        if found is None and outcome.cycles != outcome.predicted:
            found = f"cycles {outcome.predicted} predicted, {outcome.cycles} counted"
        return Verdict(difference=found, cycles=outcome.simulated)


@dataclass(frozen=True, kw_only=True)
class Streaming(Stand):
    """A core that keeps its membranes from step to step."""

    kind = "streaming"
    config: StreamConfig

    def design(self) -> wiring.Component:
        return StreamAccelerator(self.config)

    def facts(self) -> dict[str, Any]:
        return {"kind": self.kind, "config": asdict(self.config)}

    def compare(self, core: Verilated, trial: Trial) -> Verdict:
        shape = {"lanes": self.config.lanes, "units": self.config.units}
        program = compiled(trial.network, self.config, **shape)
        device = StreamDevice(core, program)
        device.load()
        found = streams.follow(trial.network, device, trial.inputs)
        return Verdict(difference=found.difference, cycles=sum(found.cycles))


def stand_of(facts: dict[str, Any]) -> Stand:
    """A stand from its `facts`."""
    match facts["kind"]:
        case OnChip.kind:
            return OnChip(config=CoreConfig(**facts["config"]))
        case External.kind:
            memory = facts["memory"]
            return External(
                config=CoreConfig(**facts["config"]),
                memory=Memory(chip=Chip(**memory["chip"]), clock_hz=memory["clock_hz"]),
                access=facts["access"],
            )
        case Streaming.kind:
            return Streaming(config=StreamConfig(**facts["config"]))
        case kind:
            raise ValueError(f"kind must be on-chip, external or streaming, not {kind!r}")
