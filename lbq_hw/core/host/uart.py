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
    was a glitch. After a byte without a stop bit the next one begins only once the line has been
    high.

    Timing. A byte is offered ``9 * divisor + divisor // 2 + 3`` cycles after the first cycle of its
    start bit. If it has not been taken when the next is complete, it stays, and the next one is
    lost.

    Members
    -------
    divisor : in
        Clock cycles per bit, at least `link.LEAST_DIVISOR`. Less than that receives nothing right,
        and still sees a break.
    rx : in
        The line, asynchronous.
    o : stream of `Received`
    lost : out
        One cycle: a byte is lost.
    """

    divisor: In(DIVISOR_BITS)
    rx: In(1)
    o: Out(stream.Signature(Received()))
    lost: Out(1)

    def elaborate(self, _platform):
        m = Module()
        line = Signal(init=1)
        timer = Signal(DIVISOR_BITS)
        left = Signal(range(11))
        shift = Signal(8)
        sample, complete, free = Signal(), Signal(), Signal()
        m.submodules.synchronizer = FFSynchronizer(self.rx, line, init=1)

        whole, half = timer == self.divisor, timer == self.divisor >> 1
        m.d.comb += [
            sample.eq(Mux(left == 9, half, whole)),
            free.eq(~self.o.valid | self.o.ready),
            self.lost.eq(complete & ~free),
        ]
        m.d.sync += timer.eq(timer + 1)
        with m.If(free):
            m.d.sync += self.o.valid.eq(complete)
            m.d.sync += [self.o.payload.data.eq(shift), self.o.payload.broken.eq(~line)]

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [left.eq(9), timer.eq(1)]
                with m.If(~line):
                    m.next = "BITS"
            with m.State("BITS"), m.If(sample):
                m.d.sync += [timer.eq(1), left.eq(left - 1)]
                with m.If((left == 9) & line):
                    m.next = "IDLE"
                with m.If(left == 0):
                    m.d.comb += complete.eq(1)
                    m.next = "IDLE"
                    with m.If(~line):
                        m.next = "BROKEN"
                with m.Else():
                    m.d.sync += shift.eq(Cat(shift[1:], line))
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
        left = Signal(range(10))  # bits after the one on the line
        shift = Signal(8)
        over = Signal()
        m.d.comb += [
            over.eq(~self.busy | (timer == self.divisor)),
            self.i.ready.eq(over & (left == 0)),
        ]
        m.d.sync += timer.eq(timer + 1)
        with m.If(over):
            m.d.sync += timer.eq(1)
            with m.If(left != 0):
                m.d.sync += [Cat(self.tx, shift).eq(Cat(shift, 1)), left.eq(left - 1)]
            with m.Else():
                m.d.sync += self.busy.eq(self.i.valid)
                with m.If(self.i.valid):
                    m.d.sync += [self.tx.eq(0), shift.eq(self.i.payload), left.eq(9)]
        return m
