"""The top of a board: clock, reset, the pins of the link, a light, and pins that are held."""

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
    """A system with ports ``rx`` (asynchronous), ``tx`` and ``busy`` on a board's pins, and with
    ``bus`` on those of its SDRAM, where there is one. ``busy`` is the LED's, if it has one.
    The pins of the board's `hold` are driven to their values.

    Its clock domain ``sync`` runs from the PLL once that is locked; `Fabric.start` has the reset
    rule of the family. Without a setting the domain is the platform's own.

    Parameters
    ----------
    board : `Board`
    system : `wiring.Component`
    setting : `Setting` or None
        Of the board's PLL.
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
