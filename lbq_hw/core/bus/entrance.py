"""Between a bus and the core: passes requests on, and holds the registers of the bus side."""

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import CoreConfig
from lbq_hw.core.bus.request import RequestSignature
from lbq_hw.core.host.port import PortSignature
from lbq_hw.isa import bus, regions
from lbq_hw.isa.record import SLICE

__all__ = ["Entrance"]


class Entrance(wiring.Component):
    """Passes requests on to the core's port, and holds the registers of `lbq_hw.isa.bus`.

    If the core refuses a request, only its register ``error`` shows it. In the region of the bus
    side, these are answered with ``refused``: requests to addresses that do not exist, reads of
    ``pixels``, writes of ``inputs``, and writes of ``pixels`` while ``by_words`` or ``feeding`` is
    0.

    Timing. A request to the registers of the bus side is answered in the next cycle; a write of
    ``pixels``, in the cycle after the word is taken. A request to the core is answered in the cycle
    after the core took the write, or answered the read.

    Members
    -------
    request : `RequestSignature`, flipped
    port : `PortSignature`
    busy : in
        A run is in progress.
    feeding : in
        As in `Feeder`.
    input_done : in
        Strobe: the run of an input that came as pixels has ended.
    by_words, clear : out
        As in `PixelInput`.
    words : stream of 32 bits
        Words written to ``pixels``.
    irq : out
        Level; see the register ``interrupt``.
    """

    def __init__(self, config: CoreConfig):
        self._offset_bits = bus.offset_bits(config)
        super().__init__(
            {
                "request": In(RequestSignature(bus.REGION_BITS + self._offset_bits)),
                "port": Out(PortSignature()),
                "busy": In(1),
                "feeding": In(1),
                "input_done": In(1),
                "by_words": Out(1),
                "clear": Out(1),
                "words": Out(stream.Signature(SLICE)),
                "irq": Out(1),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        request, port = self.request, self.port
        low, region = request.addr[: self._offset_bits], request.addr[self._offset_bits :]
        own, new, sent = Signal(), Signal(), Signal()
        m.d.comb += [
            own.eq(region == bus.BUS),
            new.eq(request.valid & ~request.ack),
            port.valid.eq(new & ~own & ~sent),
            port.write.eq(request.write),
            port.addr.eq(Cat(low, Const(0, regions.SHIFT - self._offset_bits), region)),
            port.w_data.eq(request.w_data),
        ]
        m.d.sync += [request.ack.eq(0), request.refused.eq(0)]
        with m.If(port.valid & port.ready):
            m.d.sync += [request.ack.eq(request.write), sent.eq(~request.write)]
        with m.If(sent & port.r_valid):
            m.d.sync += [request.ack.eq(1), request.r_data.eq(port.r_data), sent.eq(0)]
        self._registers(m, low, new & own)
        return m

    def _registers(self, m, low, new):
        request, number = self.request, {n: r.address for n, r in bus.REGISTERS.items()}
        ended, enabled, was_busy, inputs = Signal(), Signal(), Signal(), Signal(SLICE)
        m.d.comb += [self.irq.eq(ended & enabled), self.words.payload.eq(request.w_data)]
        m.d.sync += [was_busy.eq(self.busy), inputs.eq(inputs + self.input_done)]
        with m.If(new):
            m.d.sync += [request.ack.eq(1), request.refused.eq(1), request.r_data.eq(0)]
            with m.Switch(low):
                for name, value in (("ended", ended), ("interrupt", enabled),
                                    ("source", self.by_words)):  # fmt: skip
                    with m.Case(number[name]):
                        m.d.sync += [request.refused.eq(0), request.r_data.eq(value)]
                        with m.If(request.write):
                            m.d.sync += value.eq(
                                ended & ~request.w_data[0] if name == "ended" else request.w_data
                            )
                            if name == "source":
                                m.d.comb += self.clear.eq(1)
                with m.Case(number["pixels"]), m.If(request.write & self.by_words & self.feeding):
                    m.d.comb += self.words.valid.eq(1)
                    m.d.sync += [request.ack.eq(self.words.ready), request.refused.eq(0)]
                with m.Case(number["inputs"]), m.If(~request.write):
                    m.d.sync += [request.refused.eq(0), request.r_data.eq(inputs)]
        with m.If(was_busy & ~self.busy):
            m.d.sync += ended.eq(1)
