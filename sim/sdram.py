"""The pin-level model of an SDRAM, ``sdram.v``, as a block, alone and behind its controller."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from amaranth import Instance, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.chips import Chip
from lbq_hw.core.external.external_memory import ExternalMemory
from lbq_hw.core.external.pins import PadSignature, PinBus, SimulatedPins

MODEL = Path(__file__).with_name("sdram.v")
_TIMES = ("rcd", "rp", "ras", "rc", "rfc", "rrd", "wr", "mrd", "refresh", "power_up",
          "access", "hold", "release")  # fmt: skip


def parameters(chip: Chip, clock_hz: int) -> dict[str, int]:
    """Parameters of the model for a chip at a clock; times in ps."""
    geometry = ("data_bits", "row_bits", "column_bits", "bank_bits", "pin_bits")
    return {
        **{name.upper(): getattr(chip, name) for name in (*geometry, *_TIMES)},
        "PERIOD": 10**12 // clock_hz,
        "PERIOD_3": chip.period,
    }


def contents(words: Iterable[int], chip: Chip) -> bytes:
    """The file of ``+sdram_file`` for words in the order of their addresses."""
    return b"".join(word.to_bytes(chip.data_bits // 8, "big") for word in words)


def tape_contents(tape: bytes, word_bits: int) -> bytes:
    """The file of ``+sdram_file`` for a tape; each word has its highest byte first."""
    size = word_bits // 8
    return np.frombuffer(tape, f"<u{size}").astype(f">u{size}").tobytes()


class SdramModel(wiring.Component):
    """An instance of the model at simulated pads. Its Verilog, `MODEL`, must go with the design.

    Members
    -------
    pads : `PadSignature`, flipped
    reload : in
        Fill the memory again from the file of ``+sdram_file``.
    violated : out
        A check has failed: the model prints which one, and ends the simulation.
    """

    pads: Any
    reload: Any
    violated: Any

    def __init__(self, *, chip: Chip, clock_hz: int):
        self._parameters = parameters(chip, clock_hz)
        super().__init__({"pads": In(PadSignature(chip)), "reload": In(1), "violated": Out(1)})

    def elaborate(self, _platform: Any) -> Module:
        m: Any = Module()
        pads = self.pads
        names = ("clk", "cke", "cs_n", "ras_n", "cas_n", "we_n", "ba", "a", "dqm")
        m.submodules.sdram = Instance(
            "sdram",
            **{f"p_{name}": value for name, value in self._parameters.items()},
            **{f"i_{name}": getattr(pads, name) for name in names},
            i_dq_i=pads.dq_o,
            i_dq_driven=pads.dq_oe,
            i_reload=self.reload,
            o_dq_o=pads.dq_i,
            o_violated=self.violated,
        )
        return m


class SimulatedChip(wiring.Component):
    """Simulated pins and the model at them.

    Parameters
    ----------
    latency : int
        Of the pins.

    Members
    -------
    bus : `PinBus`, flipped
    reload, violated : in, out
        As in `SdramModel`.
    """

    bus: Any
    reload: Any
    violated: Any

    def __init__(self, *, chip: Chip, clock_hz: int, latency: int = 1):
        self._pins = SimulatedPins(chip=chip, latency=latency)
        self._model = SdramModel(chip=chip, clock_hz=clock_hz)
        super().__init__({"bus": In(PinBus(chip)), "reload": In(1), "violated": Out(1)})

    def elaborate(self, _platform: Any) -> Module:
        m: Any = Module()
        pins: Any = self._pins
        m.submodules.pins = pins
        m.submodules.model = self._model
        connect(m, flipped(self.bus), pins.bus)
        connect(m, pins.pads, self._model.pads)
        m.d.comb += [
            self._model.reload.eq(self.reload),
            self.violated.eq(self._model.violated),
        ]
        return m


class SimulatedMemory(wiring.Component):
    """An `ExternalMemory` and a `SimulatedChip`.

    Parameters
    ----------
    latency : int
        Of the pins.

    Members
    -------
    tape, host, capture : as in `ExternalMemory`
    reload, violated : in, out
        As in `SdramModel`.
    """

    tape: Any
    host: Any
    capture: Any
    reload: Any
    violated: Any

    def __init__(self, *, chip: Chip, clock_hz: int, latency: int = 1):
        self._memory = ExternalMemory(chip=chip, clock_hz=clock_hz)
        self._chip = SimulatedChip(chip=chip, clock_hz=clock_hz, latency=latency)
        members = self._memory.signature.members
        shared = {name: members[name] for name in ("tape", "host", "capture")}
        super().__init__({**shared, "reload": In(1), "violated": Out(1)})

    def elaborate(self, _platform: Any) -> Module:
        m: Any = Module()
        memory: Any = self._memory
        chip: Any = self._chip
        m.submodules.memory = memory
        m.submodules.chip = chip
        connect(m, memory.bus, chip.bus)
        connect(m, flipped(self.tape), memory.tape)
        connect(m, flipped(self.host), memory.host)
        m.d.comb += [
            self.capture.eq(memory.capture),
            chip.reload.eq(self.reload),
            self.violated.eq(chip.violated),
        ]
        return m
