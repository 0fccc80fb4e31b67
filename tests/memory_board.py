"""A board in which a block RAM with random latency stands for the external memory."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out, connect

from lbq_hw.config import CoreConfig
from lbq_hw.core.accelerator import accelerator
from lbq_hw.core.external.host_memory_port import HostMemoryPort
from lbq_hw.core.external.tape_port import TapePort
from lbq_hw.core.host import uart
from lbq_hw.core.host.link import Link
from lbq_hw.isa.link import divisor


class RandomMemory(wiring.Component):
    """Both ports of an external memory; what a core sees of one, but for its exact cycles.

    Parameters
    ----------
    words : int
        16 or 32, bits of a word.
    slices : int
        A power of two.
    stuck : int or None
        Slice whose bit 3 is always 1.
    """

    def __init__(self, *, words: int, slices: int, stuck: int | None = None):
        self._slices, self._stuck = slices, stuck
        super().__init__({"tape": In(TapePort(words)), "host": In(HostMemoryPort())})

    def elaborate(self, _platform):
        m = Module()
        tape, host = self.tape, self.host
        m.submodules.cells = cells = memory.Memory(shape=32, depth=self._slices, init=[])
        write, read = cells.write_port(), cells.read_port()
        noise, address = Signal(16, init=1), Signal(range(self._slices))
        came, at = Signal(32), Signal.like(address)
        last, inverted, upper = Signal.like(address), Signal(), Signal()
        lucky = noise[:2] == 0
        pattern = Cat(address, ~address, address)[:32] ^ inverted.replicate(32)
        m.d.comb += [
            tape.calibrated.eq(noise != 0),
            tape.aligned.eq(lucky),
            host.captures.passed.eq(0b110),
            host.captures.used.eq(1),
            read.addr.eq(address),
            came.eq(read.data),
            write.addr.eq(address),
            write.data.eq(pattern),
        ]
        m.d.sync += [
            noise.eq(Cat(noise[1:], noise[0] ^ noise[2] ^ noise[3] ^ noise[5])),
            at.eq(address),
        ]
        if self._stuck is not None:
            with m.If(at == self._stuck):
                m.d.comb += came.eq(read.data | 1 << 3)

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += host.request.ready.eq(lucky & ~tape.start)
                m.d.sync += [address.eq(0), upper.eq(0), inverted.eq(0)]
                with m.If(tape.start):
                    m.next = "FETCH"
                with m.Elif(host.test_start):
                    m.d.sync += [host.test_differing.eq(0), host.test_busy.eq(1)]
                    m.d.sync += last.eq(host.test_last)
                    m.next = "FILL"
                with m.Elif(host.request.valid & host.request.ready):
                    m.d.sync += address.eq(host.request.payload.address)
                    m.next = "READ"
                    with m.If(host.request.payload.write):
                        m.d.comb += [
                            write.en.eq(1),
                            write.addr.eq(host.request.payload.address),
                            write.data.eq(host.request.payload.data),
                        ]
                        m.next = "IDLE"
            with m.State("READ"):
                m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += [host.answer.valid.eq(lucky), host.answer.payload.eq(came)]
                with m.If(lucky):
                    m.next = "IDLE"
            with m.State("FETCH"):
                m.next = "WORD"
                with m.If(tape.stop):
                    m.next = "IDLE"
            with m.State("WORD"):
                whole = len(tape.words.payload) == 32
                m.d.comb += [
                    tape.words.valid.eq(1),
                    tape.words.payload.eq(Mux(upper, came[16:], came)),
                ]
                with m.If(tape.words.ready):
                    m.d.sync += upper.eq(~upper & (not whole))
                    with m.If(upper | whole):
                        m.d.sync += address.eq(address + 1)
                        m.next = "FETCH"
                with m.If(tape.stop):
                    m.next = "IDLE"
            with m.State("FILL"):
                m.d.comb += write.en.eq(1)
                m.d.sync += address.eq(address + 1)
                with m.If(address == last):
                    m.d.sync += address.eq(0)
                    m.next = "FETCHED"
            with m.State("FETCHED"):
                m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.sync += host.test_differing.eq(host.test_differing + (came != pattern))
                m.d.sync += address.eq(address + 1)
                m.next = "FETCHED"
                with m.If(address == last):
                    m.d.sync += [address.eq(0), inverted.eq(1)]
                    m.next = "FILL"
                    with m.If(inverted):
                        m.d.sync += host.test_busy.eq(0)
                        m.next = "IDLE"
        return m


class MemoryBoard(wiring.Component):
    """As `System`, for a core with external memory, which is a `RandomMemory`."""

    rx: In(1, init=1)
    tx: Out(1, init=1)
    busy: Out(1)

    def __init__(self, config: CoreConfig, *, clock_hz: int, baud: int, **cells: int | None):
        self._config, self._cells = config, cells
        self._divisor = divisor(clock_hz=clock_hz, baud=baud)
        super().__init__()

    def elaborate(self, _platform):
        m = Module()
        m.submodules.core = core = accelerator(self._config)(self._config)
        m.submodules.cells = cells = RandomMemory(words=self._config.external, **self._cells)
        m.submodules.link = link = Link(divisor=self._divisor)
        m.submodules.receiver = receiver = uart.UartReceiver()
        m.submodules.transmitter = transmitter = uart.UartTransmitter()
        connect(m, core.memory, cells.tape)
        connect(m, core.host_memory, cells.host)
        connect(m, receiver.o, link.i)
        connect(m, link.o, transmitter.i)
        connect(m, link.port, core.port)
        m.d.comb += [
            receiver.divisor.eq(link.divisor),
            transmitter.divisor.eq(link.divisor),
            link.idle.eq(~transmitter.busy),
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            self.busy.eq(core.busy),
        ]
        return m
