"""Bytes over a serial line: one start bit, eight data bits, lowest first, one stop bit."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from lbq_hw.isa.link import DIVISOR_BITS

__all__ = ["Received", "UartReceiver", "UartTransmitter"]


class Received(data.StructLayout):
    """A byte from the line.

    Members
    -------
    data : 8 bits
    broken : bit
        There was no stop bit: noise, another rate, or (if `data` is 0) a break.
    """

    def __init__(self):
        super().__init__({"data": 8, "broken": 1})


class UartReceiver(wiring.Component):
    """Receives bytes; samples each bit once, in its middle.

    A falling edge of an idle line begins a byte; if the line is high again half a bit later, it
    was a glitch. After a byte without a stop bit, the next byte begins only after the line has been
    high.

    Timing. A byte is offered ``9 * divisor + divisor // 2 + 2`` cycles after the first cycle of its
    start bit.

    Members
    -------
    divisor : in
        Clock cycles per bit, at least `link.LEAST_DIVISOR`. With a smaller divisor no byte is
        received correctly, but a break is still detected.
    rx : in
        The line, asynchronous.
    o : stream of `Received`
    """

    divisor: In(DIVISOR_BITS)
    rx: In(1)
    o: Out(stream.Signature(Received(), always_ready=True))

    def elaborate(self, _platform):
        m = Module()
        line = Signal(init=1)
        # Counts the cycles of half a bit; of an odd number of cycles, the second half has one more.
        timer, second = Signal(DIVISOR_BITS - 1), Signal()
        bits = Signal(9)  # received bits, the latest highest; places not yet filled are 1
        over, sample = Signal(), Signal()
        m.submodules.synchronizer = FFSynchronizer(self.rx, line, init=1)

        m.d.comb += [
            over.eq(timer == self.divisor >> 1),
            sample.eq(over & ~second),
            self.o.payload.data.eq(bits[1:]),
            self.o.payload.broken.eq(~line),
        ]
        m.d.sync += timer.eq(timer + 1)
        with m.If(sample):
            m.d.sync += bits.eq(Cat(bits[1:], line))
        with m.If(over):
            m.d.sync += [timer.eq(Mux(second, 1, ~self.divisor[0])), second.eq(~second)]

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [bits.eq(~0), timer.eq(1), second.eq(0)]
                with m.If(~line):
                    m.next = "START"
            with m.State("START"), m.If(sample):
                m.next = "BITS"
                with m.If(line):
                    m.next = "IDLE"
            with m.State("BITS"), m.If(sample & ~bits[0]):  # all bits are in: this is the stop bit
                m.d.comb += self.o.valid.eq(1)
                m.next = "IDLE"
                with m.If(~line):
                    m.next = "BROKEN"
            with m.State("BROKEN"), m.If(line):
                m.next = "IDLE"
        return m


class UartTransmitter(wiring.Component):
    """Sends bytes, each 10 bits long, without a gap where the next is offered in time.

    Members
    -------
    divisor : in
        Clock cycles per bit.
    i : stream of bytes
        Taken at the beginning of its start bit.
    tx : out
        The line.
    busy : out
        A byte is on the line.
    """

    divisor: In(DIVISOR_BITS)
    i: In(stream.Signature(8))
    tx: Out(1, init=1)
    busy: Out(1)

    def elaborate(self, _platform):
        m = Module()
        timer = Signal(DIVISOR_BITS)
        bits = Signal(9)  # bits after the one on the line; the highest 1 is the stop bit
        over = Signal()
        m.d.comb += [
            over.eq(~self.busy | (timer == self.divisor)),
            self.i.ready.eq(over & (bits == 0)),
        ]
        m.d.sync += timer.eq(timer + 1)
        with m.If(over):
            m.d.sync += timer.eq(1)
            with m.If(bits != 0):
                m.d.sync += Cat(self.tx, bits).eq(bits)
            with m.Else():
                m.d.sync += self.busy.eq(self.i.valid)
                with m.If(self.i.valid):
                    m.d.sync += [self.tx.eq(0), bits.eq(Cat(self.i.payload, 1))]
        return m
