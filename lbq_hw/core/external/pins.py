"""Pins of an SDRAM: all registers are in IO cells, and the clock is shifted by 180 degrees."""

from amaranth import Cat, ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import data, io, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.chips import Chip
from lbq_hw.core.fabric.base import fabric
from lbq_hw.core.sizes import check_size

__all__ = ["PadSignature", "PinBus", "SdramPins", "SimulatedPins"]

_OUTPUTS = ("clk_en", "cs", "ras", "cas", "we", "ba", "a", "dqm")
_ACTIVE_LOW = ("cs", "ras", "cas", "we")


class PinBus(wiring.Signature):
    """The signals between a controller and the pins.

    Members
    -------
    clk_en, cs, ras, cas, we, ba, a, dqm : out
        1 means asserted, also if the pad is active low.
    dq_o, dq_oe : out
        Data, and whether the pads drive them.
    dq_i : array of two words, in
        Data at a rising edge of the clock, and at the falling edge half a cycle after it.
    """

    def __init__(self, chip: Chip):
        super().__init__(
            {
                "clk_en": Out(1),
                "cs": Out(1),
                "ras": Out(1),
                "cas": Out(1),
                "we": Out(1),
                "ba": Out(chip.bank_bits),
                "a": Out(chip.pin_bits),
                "dqm": Out(chip.data_bits // 8),
                "dq_o": Out(chip.data_bits),
                "dq_oe": Out(1),
                "dq_i": In(data.ArrayLayout(chip.data_bits, 2)),
            }
        )


class SdramPins(wiring.Component):
    """The pins on a chip.

    Every pin uses a DDR buffer of the platform, with the same data in both halves of a cycle, so
    that all outputs have the same registers, latency and delay as the clock pin. The clock falls
    when the outputs change and rises half a cycle later. Data pins (`Fabric.data_pins`) are sampled
    at both edges, and the controller selects one sample. They are not driven after configuration.

    Timing. The latency of the platform's buffers, the same for all outputs.

    Parameters
    ----------
    chip : `Chip`
    port : platform's ``sdram`` resource, requested with ``dir="-"``
        Address pins that the chip does not use stay 0. If the resource has no clock enable, chip
        select or masks, the board ties these pins of the chip.

    Members
    -------
    bus : `PinBus`, flipped
    """

    def __init__(self, *, chip: Chip, port):
        self._port = port
        super().__init__({"bus": In(PinBus(chip))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.clk = clock = io.DDRBuffer("o", self._port.clk)
        m.d.comb += [clock.o[0].eq(0), clock.o[1].eq(1)]
        for name in _OUTPUTS:
            if hasattr(self._port, name):
                m.submodules[name] = buffer = io.DDRBuffer("o", getattr(self._port, name))
                m.d.comb += [half.eq(getattr(self.bus, name)) for half in buffer.o]
        m.submodules.dq = pads = fabric(platform).data_pins(self._port.dq)
        m.d.comb += [half.eq(self.bus.dq_o) for half in pads.o]
        m.d.comb += [pads.oe.eq(self.bus.dq_oe), self.bus.dq_i.eq(pads.i)]
        return m


class PadSignature(wiring.Signature):
    """The pads as seen by an SDRAM, with separate signals for both directions of the data.

    Members
    -------
    clk, cke, cs_n, ras_n, cas_n, we_n, ba, a, dqm : out
    dq_o, dq_oe : out
    dq_i : in
    """

    def __init__(self, chip: Chip):
        super().__init__(
            {
                "clk": Out(1),
                "cke": Out(1),
                "cs_n": Out(1),
                "ras_n": Out(1),
                "cas_n": Out(1),
                "we_n": Out(1),
                "ba": Out(chip.bank_bits),
                "a": Out(chip.pin_bits),
                "dqm": Out(chip.data_bits // 8),
                "dq_o": Out(chip.data_bits),
                "dq_oe": Out(1),
                "dq_i": In(chip.data_bits),
            }
        )


class SimulatedPins(wiring.Component):
    """The pins in simulation: as `SdramPins`, with plain signals for pads.

    Timing. An output reaches its pad after ``latency`` cycles. The value of a pad at a rising edge
    is on the bus ``latency`` cycles after that edge, together with the value at the falling edge
    half a cycle after it.

    Parameters
    ----------
    chip : `Chip`
    latency : int
        Registers on outputs and on inputs; platforms differ.

    Members
    -------
    bus : `PinBus`, flipped
    pads : `PadSignature`
    """

    def __init__(self, *, chip: Chip, latency: int = 1):
        check_size("latency", latency)
        self._latency = latency
        super().__init__({"bus": In(PinBus(chip)), "pads": Out(PadSignature(chip))})

    def elaborate(self, _platform):
        m = Module()
        # Local: no other block uses the falling edge.
        m.domains.falling = ClockDomain(clk_edge="neg", reset_less=True, local=True)
        bus, pads = self.bus, self.pads
        out = {"cke": bus.clk_en, "dq_o": bus.dq_o, "dq_oe": bus.dq_oe}
        out |= {f"{name}_n": ~getattr(bus, name) for name in _ACTIVE_LOW}
        out |= {name: getattr(bus, name) for name in ("ba", "a", "dqm")}
        names = list(out)
        late = self._delay(m, Cat(out.values()), "out", self._latency)
        at_rise = Signal.like(pads.dq_i)
        at_fall = Signal.like(pads.dq_i)
        both = Signal(2 * len(pads.dq_i))
        m.d.comb += [
            ClockSignal("falling").eq(ClockSignal()),
            pads.clk.eq(~ClockSignal()),
            Cat(getattr(pads, name) for name in names).eq(late),
            bus.dq_i.eq(self._delay(m, both, "in", self._latency - 1)),
        ]
        m.d.falling += at_fall.eq(pads.dq_i)
        m.d.sync += [at_rise.eq(pads.dq_i), both.eq(Cat(at_rise, at_fall))]
        return m

    @staticmethod
    def _delay(m, value, name, cycles):
        for cycle in range(cycles):
            late = Signal(len(value), name=f"{name}_{cycle}", reset_less=True)
            m.d.sync += late.eq(value)
            value = late
        return value
