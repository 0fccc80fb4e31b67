"""Clock generators: the PLL of each family as an instance of its primitive."""

from amaranth import Elaboratable, Instance, Module, Signal
from amaranth.lib import io

from lbq_hw.boards.clocks import Setting

__all__ = ["LOOP_FILTER", "ClockGenerator"]

LOOP_FILTER = {
    "ICP_CURRENT": "12",
    "LPF_RESISTOR": "8",
    "MFG_ENABLE_FILTEROPAMP": "1",
    "MFG_GMCREF_SEL": "2",
}
"""Attributes of an ECP5's PLL, as ecppll writes them for every clock. nextpnr sets the loop filter
to 0 without them, and a PLL with such a filter never locks."""


class ClockGenerator(Elaboratable):
    """A PLL between a clock pin and a clock.

    Parameters
    ----------
    setting : `Setting`
    pin : port
        Of the clock that comes in, as a platform gives it with ``dir="-"``.

    Members
    -------
    clock : Signal, out
    locked : Signal, out
        Low until the clock is stable.
    """

    def __init__(self, *, setting: Setting, pin):
        self._setting = setting
        self._pin = pin
        self.clock = Signal()
        self.locked = Signal()

    def elaborate(self, _platform):
        m = Module()
        m.submodules.primitive = _PRIMITIVES[self._setting.pll](self, m)
        return m

    @property
    def _parameters(self):
        return {f"p_{name}": value for name, value in self._setting.parameters.items()}

    def _input(self, m):
        """The clock behind its pin."""
        m.submodules.clock_pin = buffer = io.Buffer("i", self._pin)
        return buffer.i

    def _sb_pll40_pad(self, _m):
        return self._sb_pll40("SB_PLL40_PAD", i_PACKAGEPIN=self._pin.io)

    def _sb_pll40_core(self, m):
        return self._sb_pll40("SB_PLL40_CORE", i_REFERENCECLK=self._input(m))

    def _sb_pll40(self, kind, **pin):
        return Instance(
            kind,
            **self._parameters,
            **pin,
            p_FEEDBACK_PATH="SIMPLE",
            i_RESETB=1,
            i_BYPASS=0,
            o_PLLOUTGLOBAL=self.clock,
            o_LOCK=self.locked,
        )

    def _ehxplll(self, m):
        """CLKOP is the clock, and CLKOS feeds back inside the PLL, as LiteX has it: no global net
        is in the loop. nextpnr enables every output that is not disabled.
        """
        divisors = self._setting.parameters
        return Instance(
            "EHXPLLL",
            **self._parameters,
            **{f"a_{name}": value for name, value in LOOP_FILTER.items()},
            p_FEEDBK_PATH="INT_OS",
            p_OUTDIVIDER_MUXA="DIVA",
            p_OUTDIVIDER_MUXB="DIVB",
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_CPHASE=divisors["CLKOP_DIV"] - 1,
            p_CLKOS_ENABLE="ENABLED",
            p_CLKOS_CPHASE=divisors["CLKOS_DIV"] - 1,
            p_CLKOS2_ENABLE="DISABLED",
            p_CLKOS3_ENABLE="DISABLED",
            i_CLKI=self._input(m),
            i_RST=0,
            i_STDBY=0,
            i_PHASESEL0=0,
            i_PHASESEL1=0,
            i_PHASEDIR=1,
            i_PHASESTEP=1,
            i_PHASELOADREG=1,
            i_PLLWAKESYNC=0,
            i_ENCLKOP=0,
            o_CLKOP=self.clock,
            o_LOCK=self.locked,
        )

    def _rpll(self, m):
        return Instance(
            "rPLL",
            **self._parameters,
            p_FCLKIN=f"{self._setting.input_hz / 1e6:g}",
            p_DYN_IDIV_SEL="false",
            p_DYN_FBDIV_SEL="false",
            p_DYN_ODIV_SEL="false",
            p_PSDA_SEL="0000",
            p_DUTYDA_SEL="1000",
            p_CLKFB_SEL="internal",
            p_CLKOUT_BYPASS="false",
            p_CLKOUTP_BYPASS="false",
            p_CLKOUTD_BYPASS="false",
            p_DEVICE="GW1NR-9C" if self._setting.pll == "rpll_gw1nr" else "GW2AR-18C",
            i_CLKIN=self._input(m),
            i_CLKFB=0,
            i_RESET=0,
            i_RESET_P=0,
            i_FBDSEL=0,
            i_IDSEL=0,
            i_ODSEL=0,
            i_PSDA=0,
            i_DUTYDA=0,
            i_FDLY=0,
            o_CLKOUT=self.clock,
            o_LOCK=self.locked,
        )


_PRIMITIVES = {
    "sb_pll40_pad": ClockGenerator._sb_pll40_pad,
    "sb_pll40_core": ClockGenerator._sb_pll40_core,
    "ehxplll": ClockGenerator._ehxplll,
    "rpll_gw1nr": ClockGenerator._rpll,
    "rpll_gw2ar": ClockGenerator._rpll,
}
