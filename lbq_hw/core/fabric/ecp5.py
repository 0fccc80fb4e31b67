"""Primitives of the ECP5: its PLL, a clock gate, and data pins that start as inputs."""

from amaranth import ClockDomain, ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import data, io, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.base import Fabric, clock_input

__all__ = ["FABRIC", "LOOP_FILTER", "EcpDataPins"]

LOOP_FILTER = {
    "ICP_CURRENT": "12",
    "LPF_RESISTOR": "8",
    "MFG_ENABLE_FILTEROPAMP": "1",
    "MFG_GMCREF_SEL": "2",
}
"""Attributes of an ECP5's PLL, as ecppll writes them for every clock. nextpnr sets the loop filter
to 0 without them, and a PLL with such a filter never locks."""
_OUTPUT_STAGES = 2  # registers of an ODDRX1F before its last one


class Ecp5(Fabric):
    """A core that fills the chip has no reset, because the reset would be its longest net. Instead,
    its clock is stopped until the PLL is locked, and all registers start with their initial values.
    """

    def pll(self, m, setting, pin, clock, locked):
        """CLKOP is the clock, and CLKOS feeds back inside the PLL, as LiteX has it: no global net
        is in the loop. nextpnr enables every output that is not disabled.
        """
        divisors = setting.parameters
        return Instance(
            "EHXPLLL",
            **{f"p_{name}": value for name, value in divisors.items()},
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
            i_CLKI=clock_input(m, pin),
            i_RST=0,
            i_STDBY=0,
            i_PHASESEL0=0,
            i_PHASESEL1=0,
            i_PHASEDIR=1,
            i_PHASESTEP=1,
            i_PHASELOADREG=1,
            i_PLLWAKESYNC=0,
            i_ENCLKOP=0,
            o_CLKOP=clock,
            o_LOCK=locked,
        )

    def start(self, m, made, locked, *, hertz, large):
        if not large:
            super().start(m, made, locked, hertz=hertz, large=large)
            return
        m.domains.sync = ClockDomain(reset_less=True)
        m.domains.made = ClockDomain(reset_less=True)
        runs = Signal()
        m.d.comb += ClockSignal("made").eq(made)
        m.submodules.lock = FFSynchronizer(locked, runs, o_domain="made")
        m.submodules.gate = Instance("DCCA", i_CLKI=made, i_CE=runs, o_CLKO=ClockSignal("sync"))

    def data_pins(self, port):
        return EcpDataPins(port)


class EcpDataPins(wiring.Component):
    """Data pins of an ECP5: as `io.DDRBuffer`, but not driven from configuration on.

    The output enable registers of `io.DDRBuffer` start as "drive", and stay so until the PLL is
    locked, because the clock is stopped until then. If the FPGA is configured again during a read,
    the SDRAM still drives the pins: bus contention.

    Timing. As `io.DDRBuffer` on an ECP5.

    Parameters
    ----------
    port : `io.SingleEndedPort`

    Members
    -------
    i : array of two words, out
    o : array of two words, in
    oe : in
        As in `io.DDRBuffer`.
    """

    def __init__(self, port: io.SingleEndedPort):
        self._port = port
        words = data.ArrayLayout(len(port), 2)
        super().__init__({"i": Out(words), "o": In(words), "oe": In(1)})

    def elaborate(self, _platform):
        m = Module()
        clock = ClockSignal()
        inverted = Const(sum(flag << bit for bit, flag in enumerate(self._port.invert)))
        outputs, inputs = (Signal(data.ArrayLayout(len(self._port), 2)) for _ in range(2))
        m.d.comb += [outputs[half].eq(self.o[half] ^ inverted) for half in range(2)]
        m.d.comb += [self.i[half].eq(inputs[half] ^ inverted) for half in range(2)]
        released = ~self.oe
        for stage in range(_OUTPUT_STAGES):
            late = Signal(name=f"released_{stage}")
            m.submodules[f"stage_{stage}"] = Instance("FD1S3AY", i_CK=clock, i_D=released, o_Q=late)
            released = late
        for bit in range(len(self._port)):
            shown, driven, free = (Signal(name=f"{name}_{bit}") for name in ("i", "o", "t"))
            m.submodules[f"input_{bit}"] = Instance(
                "IDDRX1F", i_SCLK=clock, i_RST=Const(0), i_D=shown,
                o_Q0=inputs[0][bit], o_Q1=inputs[1][bit],
            )  # fmt: skip
            m.submodules[f"output_{bit}"] = Instance(
                "ODDRX1F", i_SCLK=clock, i_RST=Const(0), o_Q=driven,
                i_D0=outputs[0][bit], i_D1=outputs[1][bit],
            )  # fmt: skip
            m.submodules[f"release_{bit}"] = Instance(
                "OFS1P3BX", i_SCLK=clock, i_SP=Const(1), i_PD=Const(0), i_D=released, o_Q=free
            )
            m.submodules[f"pad_{bit}"] = Instance(
                "BB", i_T=free, i_I=driven, o_O=shown, io_B=self._port.io[bit]
            )
        return m


FABRIC = Ecp5()
