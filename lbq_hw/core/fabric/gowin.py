"""Primitives of the Gowin families: their PLL.

The tools cannot set the initial value of the output enable of an SDRAM's data pins. But the clock
runs from configuration on, so the pins are released at its first edge.
"""

from amaranth import Instance

from lbq_hw.core.fabric.base import Fabric, clock_input

__all__ = ["FABRIC"]

_CHIPS = {"rpll_gw1nr": "GW1NR-9C", "rpll_gw2ar": "GW2AR-18C"}


class Gowin(Fabric):
    def pll(self, m, setting, pin, clock, locked):
        return Instance(
            "rPLL",
            **{f"p_{name}": value for name, value in setting.parameters.items()},
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
            p_DEVICE=_CHIPS[setting.pll],
            i_CLKIN=clock_input(m, pin),
            i_CLKFB=0,
            i_RESET=0,
            i_RESET_P=0,
            i_FBDSEL=0,
            i_IDSEL=0,
            i_ODSEL=0,
            i_PSDA=0,
            i_DUTYDA=0,
            i_FDLY=0,
            o_CLKOUT=clock,
            o_LOCK=locked,
        )


FABRIC = Gowin()
