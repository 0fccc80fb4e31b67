"""The streaming core behind a serial line: what a board's top has inside."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from lbq_hw.config import address_bits
from lbq_hw.core.host import uart
from lbq_hw.core.host.link import Link
from lbq_hw.core.streaming.accelerator import StreamAccelerator
from lbq_hw.isa.link import divisor
from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.records import StreamRegion

__all__ = ["StreamSystem"]


class StreamSystem(wiring.Component):
    """`StreamAccelerator` + `Link` + UART: speaks the frames of `lbq_hw.isa.link` on two pins.

    Parameters
    ----------
    clock_hz : int
        Clock of the domain sync.
    baud : int
        Rate of the line after a reset; within 2 % of a rate that the clock can be divided to.

    Members
    -------
    rx : in
        From the host, asynchronous; idle high.
    tx : out
        To the host.
    busy : out
        A step or a reset runs.
    """

    def __init__(self, config: StreamConfig, *, clock_hz: int, baud: int):
        self._config = config
        self._divisor = divisor(clock_hz=clock_hz, baud=baud)
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "busy": Out(1)})

    @property
    def config(self) -> StreamConfig:
        return self._config

    def elaborate(self, _platform):
        m = Module()
        m.submodules.core = core = StreamAccelerator(self._config)
        m.submodules.link = link = Link(divisor=self._divisor, address_bits=self._address_bits())
        m.submodules.receiver = receiver = uart.UartReceiver()
        m.submodules.transmitter = transmitter = uart.UartTransmitter()
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

    def _address_bits(self) -> int:
        """Low bits of an address within a region that the core decodes."""
        c = self._config
        return max(
            address_bits(records.depths(c)[region]) + (records.slices(c, region) - 1).bit_length()
            for region in StreamRegion
        )
