"""The top of a board: clock, reset, the pins of the link, and a light."""

from math import ceil

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer, ResetSynchronizer
from amaranth.lib.wiring import connect

from boards import Board
from boards.clocks import Setting
from lbq_hw.core.external.pins import SdramPins

__all__ = ["WAKE_SECONDS", "Top"]

WAKE_SECONDS = 15e-6
"""How long an iCE40 is held in reset: for about 3 us after configuration its block RAMs read as 0,
whatever they hold. Lattice does not document it; Amaranth's platform waits as long."""


class Top(Elaboratable):
    """A system with ports ``rx`` (asynchronous), ``tx`` and ``busy`` on a board's pins, and with
    ``bus`` on those of its SDRAM, if it has external memory. ``busy`` is the LED's, if it has one.

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
        if "bus" in system.signature.members:
            port = platform.request("sdram", dir="-")
            m.submodules.sdram = pins = SdramPins(chip=self._board.chip, port=port)
            connect(m, system.bus, pins.bus)
        return m

    def _clock(self, m, platform):
        pin = platform.request(self._board.clock, dir="-")
        made, locked = Signal(), Signal()
        build = _PRIMITIVES[self._setting.pll]
        m.submodules.pll = build(m, self._setting, pin, made, locked)
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


def _sb_pll40(m, setting, pin, made, locked, *, pad):
    parameters = {f"p_{name}": value for name, value in setting.parameters.items()}
    common = {
        "p_FEEDBACK_PATH": "SIMPLE",
        "i_RESETB": 1,
        "i_BYPASS": 0,
        "o_PLLOUTGLOBAL": made,
        "o_LOCK": locked,
    }
    if pad:
        return Instance("SB_PLL40_PAD", **common, **parameters, i_PACKAGEPIN=pin.io)
    m.submodules.clock_pin = buffer = io.Buffer("i", pin)
    return Instance("SB_PLL40_CORE", **common, **parameters, i_REFERENCECLK=buffer.i)


def _sb_pll40_pad(m, setting, pin, made, locked):
    return _sb_pll40(m, setting, pin, made, locked, pad=True)


def _sb_pll40_core(m, setting, pin, made, locked):
    return _sb_pll40(m, setting, pin, made, locked, pad=False)


def _ehxplll(m, setting, pin, made, locked):
    m.submodules.clock_pin = buffer = io.Buffer("i", pin)
    parameters = {f"p_{name}": value for name, value in setting.parameters.items()}
    feedback = Signal()
    divisors = setting.parameters
    return Instance(
        "EHXPLLL",
        **parameters,
        p_FEEDBK_PATH="CLKOP",
        p_CLKOP_ENABLE="ENABLED",
        p_CLKOP_CPHASE=divisors["CLKOP_DIV"] - 1,
        p_CLKOS_ENABLE="ENABLED",
        p_CLKOS_CPHASE=divisors["CLKOS_DIV"] - 1,
        i_CLKI=buffer.i,
        i_CLKFB=feedback,
        i_RST=0,
        i_STDBY=0,
        i_PHASESEL0=0,
        i_PHASESEL1=0,
        i_PHASEDIR=0,
        i_PHASESTEP=0,
        i_PHASELOADREG=0,
        i_PLLWAKESYNC=0,
        i_ENCLKOP=0,
        i_ENCLKOS=0,
        o_CLKOP=feedback,
        o_CLKOS=made,
        o_LOCK=locked,
    )


def _rpll(m, setting, pin, made, locked):
    m.submodules.clock_pin = buffer = io.Buffer("i", pin)
    parameters = {f"p_{name}": value for name, value in setting.parameters.items()}
    return Instance(
        "rPLL",
        **parameters,
        p_FCLKIN=f"{setting.input_hz / 1e6:g}",
        p_DYN_IDIV_SEL="false",
        p_DYN_FBDIV_SEL="false",
        p_DYN_ODIV_SEL="false",
        p_PSDA_SEL="0000",
        p_DUTYDA_SEL="1000",
        p_CLKFB_SEL="internal",
        p_CLKOUT_BYPASS="false",
        p_CLKOUTP_BYPASS="false",
        p_CLKOUTD_BYPASS="false",
        p_DEVICE="GW1NR-9C" if setting.pll == "rpll_gw1nr" else "GW2AR-18C",
        i_CLKIN=buffer.i,
        i_CLKFB=0,
        i_RESET=0,
        i_RESET_P=0,
        i_FBDSEL=0,
        i_IDSEL=0,
        i_ODSEL=0,
        i_PSDA=0,
        i_DUTYDA=0,
        i_FDLY=0,
        o_CLKOUT=made,
        o_LOCK=locked,
    )


_PRIMITIVES = {
    "sb_pll40_pad": _sb_pll40_pad,
    "sb_pll40_core": _sb_pll40_core,
    "ehxplll": _ehxplll,
    "rpll_gw1nr": _rpll,
    "rpll_gw2ar": _rpll,
}
