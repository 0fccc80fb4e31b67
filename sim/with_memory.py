"""A core with its external memory, simulated down to the pins of the chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.chips import Chip
from lbq_hw.chips.timing import ReaderTiming, reader_timing
from lbq_hw.config import CoreConfig
from lbq_hw.core.accelerator import accelerator
from lbq_hw.core.system import System
from lbq_hw.isa.door import Opening
from lbq_hw.sim.sdram import SimulatedChip, SimulatedMemory

__all__ = ["Memory", "SystemWithMemory", "WithMemory"]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """An external memory: its chip, and the clock that it shares with the core."""

    chip: Chip
    clock_hz: int

    @property
    def timing(self) -> ReaderTiming:
        """The timing of its words."""
        return reader_timing(self.chip, self.clock_hz)


class WithMemory(wiring.Component):
    """`Accelerator` + `SimulatedMemory`: the whole design except the serial line.

    Members
    -------
    port : as in `Accelerator`
    busy : out
        A program runs, or the memory is not calibrated yet.
    reload, violated : in, out
        As in `SdramModel`.
    """

    port: Any
    busy: Any
    reload: Any
    violated: Any

    def __init__(self, config: CoreConfig, memory: Memory):
        self._core = accelerator(config)(config)
        self._memory = SimulatedMemory(chip=memory.chip, clock_hz=memory.clock_hz)
        port = self._core.signature.members["port"]
        super().__init__({"port": port, "busy": Out(1), "reload": In(1), "violated": Out(1)})

    def elaborate(self, _platform: Any) -> Module:
        m: Any = Module()
        core: Any = self._core
        m.submodules.core = core
        m.submodules.memory = memory = self._memory
        connect(m, flipped(self.port), core.port)
        connect(m, core.memory, memory.tape)
        connect(m, core.host_memory, memory.host)
        m.d.comb += [
            self.busy.eq(core.busy | ~memory.tape.calibrated),
            memory.reload.eq(self.reload),
            self.violated.eq(memory.violated),
        ]
        return m


class SystemWithMemory(wiring.Component):
    """`System` + `SimulatedChip`: a board with external memory; only the line has pins.

    Members
    -------
    rx, tx, busy : as in `System`
    """

    rx: Any
    tx: Any
    busy: Any

    def __init__(
        self, config: CoreConfig, memory: Memory, *, baud: int, opening: Opening | None = None
    ):
        pins = {"chip": memory.chip, "clock_hz": memory.clock_hz}
        self._system = System(config, baud=baud, opening=opening, **pins)
        self._chip = SimulatedChip(**pins)
        members = self._system.signature.members
        super().__init__({name: members[name] for name in ("rx", "tx", "busy")})

    def elaborate(self, _platform: Any) -> Module:
        m: Any = Module()
        system: Any = self._system
        m.submodules.system = system
        m.submodules.chip = chip = self._chip
        connect(m, system.bus, chip.bus)
        m.d.comb += [
            system.rx.eq(self.rx),
            self.tx.eq(system.tx),
            self.busy.eq(system.busy),
        ]
        return m
