"""The top of a board: clock, reset, the pins of the link, a light, and pins that are held."""

from math import ceil

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer, ResetSynchronizer
from amaranth.lib.wiring import connect

from lbq_hw.boards import Board
from lbq_hw.boards.clocks import Setting
from lbq_hw.boards.plls import ClockGenerator
from lbq_hw.core.external.pins import SdramPins

__all__ = ["WAKE_SECONDS", "Top"]

WAKE_SECONDS = 15e-6
"""How long an iCE40 is held in reset: for about 3 us after configuration its block RAMs read as 0,
whatever they hold. Lattice does not document it; Amaranth's platform waits as long."""


class Top(Elaboratable):
    """A system with ports ``rx`` (asynchronous), ``tx`` and ``busy`` on a board's pins, and with
    ``bus`` on those of its SDRAM, if it has external memory. ``busy`` is the LED's, if it has one.
    The pins of the board's `hold` are driven to their values.

    Its clock domain ``sync`` runs from the PLL, and is held in reset until the PLL is locked, on an
    iCE40 for at least `WAKE_SECONDS` more, in which its block RAMs begin to give what they hold.
    Without a setting the domain is the platform's own, which has the same wait.

    A system with external memory fills the chip, and a reset would be its longest wire. On an ECP5
    it has none: its clock stands still until the PLL is locked, and all registers begin with what
    configuration gave them.

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
            self._clock(m, platform)
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

    def _clock(self, m, platform):
        pin = platform.request(self._board.clock, dir="-")
        m.submodules.pll = pll = ClockGenerator(setting=self._setting, pin=pin)
        made, locked = pll.clock, pll.locked
        if self._board.family == "ecp5" and "bus" in self._system.signature.members:
            self._gate(m, made, locked)
            return
        m.domains.sync = ClockDomain()
        m.d.comb += ClockSignal("sync").eq(made)
        ready = self._awake(m, made, locked) if self._board.family == "ice40" else locked
        m.submodules.reset = ResetSynchronizer(~ready, domain="sync")

    def _gate(self, m, made, locked):
        """The clock of ``sync``, which runs while the PLL is locked."""
        m.domains.sync = ClockDomain(reset_less=True)
        m.domains.made = ClockDomain(reset_less=True)
        runs = Signal()
        m.d.comb += ClockSignal("made").eq(made)
        m.submodules.lock = FFSynchronizer(locked, runs, o_domain="made")
        m.submodules.gate = Instance("DCCA", i_CLKI=made, i_CE=runs, o_CLKO=ClockSignal("sync"))

    def _awake(self, m, made, locked):
        """Rises once the block RAMs can be read; counts up to a power of two of cycles."""
        m.domains.wake = ClockDomain()
        cycles = ceil(WAKE_SECONDS * self._setting.output_hz)
        count = Signal((cycles - 1).bit_length() + 1)
        m.d.comb += ClockSignal("wake").eq(made)
        m.submodules.wake_reset = ResetSynchronizer(~locked, domain="wake")
        m.d.wake += count.eq(count + ~count[-1])
        return count[-1]
