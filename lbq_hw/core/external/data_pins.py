"""Data pins of an SDRAM, which drive nothing before they are told to."""

from amaranth import ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import data, io, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["EcpDataPins", "data_pins"]

_OUTPUT_STAGES = 2  # registers of an ODDRX1F before its last one


class EcpDataPins(wiring.Component):
    """Data pins of an ECP5: as `io.DDRBuffer`, but released from configuration on.

    The registers of that buffer's output enable start with "drive". The clock stands still until
    the PLL is locked, and meanwhile a chip that was read when the board was configured anew would
    drive against them.

    Timing. That of `io.DDRBuffer` on an ECP5.

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


def data_pins(platform, port: io.SingleEndedPort):
    """Data pins on a platform, with the members of `io.DDRBuffer`.

    A Gowin has no start value for this register that the tools can set, but its clock runs from
    configuration on: pins are released at the first edge.
    """
    if platform.family == "ecp5":
        return EcpDataPins(port)
    return io.DDRBuffer("io", port)
