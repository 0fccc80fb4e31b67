"""The top level of a board: clock, reset, serial pins, an LED, and pins tied to fixed values."""

from amaranth import Elaboratable, Module
from amaranth.lib import io
from amaranth.lib.wiring import connect

from lbq_hw.boards import Board
from lbq_hw.boards.clocks import Setting
from lbq_hw.core.external.pins import SdramPins
from lbq_hw.core.fabric.base import fabric
from lbq_hw.core.fabric.clock import ClockGenerator

__all__ = ["Top"]


class Top(Elaboratable):
    """Connects a system to a board's pins: ``rx`` (asynchronous) and ``tx`` to the serial line,
    ``busy`` to an LED if the board has one, and ``bus`` to the SDRAM if there is one. The pins in
    the board's `hold` are driven to their fixed values.

    The clock domain ``sync`` starts when the PLL has locked; `Fabric.start` has the reset rule of
    each family. Without a PLL setting, the platform makes the domain.

    Parameters
    ----------
    board : `Board`
    system : `wiring.Component`
    setting : `Setting` or None
        Setting of the board's PLL.
    """

    def __init__(self, *, board: Board, system, setting: Setting | None):
        self._board = board
        self._system = system
        self._setting = setting

    def elaborate(self, platform):
        m = Module()
        m.submodules.system = system = self._system
        if self._setting is not None:
            pin = platform.request(self._board.clock, dir="-")
            m.submodules.pll = pll = ClockGenerator(setting=self._setting, pin=pin)
            fabric(platform).start(
                m,
                pll.clock,
                pll.locked,
                hertz=self._setting.output_hz,
                large="bus" in system.signature.members,
            )
        uart = platform.request(*self._board.uart, dir="-")
        m.submodules.rx = rx = io.Buffer("i", uart.rx)
        m.submodules.tx = tx = io.Buffer("o", uart.tx)
        m.d.comb += [system.rx.eq(rx.i), tx.o.eq(system.tx)]
        if self._board.led is not None:
            led = platform.request(*self._board.led, dir="-")
            m.submodules.led = light = io.Buffer("o", led)
            m.d.comb += light.o.eq(system.busy)
        for name, number, value in self._board.hold:
            port = platform.request(name, number, dir="-")
            m.submodules[f"hold_{name}_{number}"] = held = io.Buffer("o", port)
            m.d.comb += held.o.eq(value)
        if "bus" in system.signature.members:
            port = platform.request("sdram", dir="-")
            m.submodules.sdram = pins = SdramPins(chip=self._board.chip, port=port)
            connect(m, system.bus, pins.bus)
        return m
