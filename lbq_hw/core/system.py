"""The core behind a serial line: what a board's top has inside."""

from collections.abc import Mapping, Sequence

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.chips import Chip
from lbq_hw.config import CoreConfig
from lbq_hw.core.accelerator import accelerator
from lbq_hw.core.external.external_memory import ExternalMemory
from lbq_hw.core.external.pins import PinBus
from lbq_hw.core.host import uart
from lbq_hw.core.host.addresses import used_bits
from lbq_hw.core.host.door import Door
from lbq_hw.core.host.link import Link
from lbq_hw.core.timing import timing
from lbq_hw.isa.door import Opening
from lbq_hw.isa.link import divisor
from lbq_hw.isa.regions import Region, tag

__all__ = ["System"]


class System(wiring.Component):
    """`Accelerator` + `Link` + UART: speaks the frames of `lbq_hw.isa.link` on two pins.

    Parameters
    ----------
    clock_hz : int
        Clock of the domain sync.
    baud : int
        Rate of the line after a reset; within 2 % of a rate that the clock can be divided to.
    image : entries by region, or None
        Contents of the memories after configuration; None: zeros.
    chip : `Chip` or None
        The external memory, for a core that has one; None for any other core.
    opening : `Opening` or None
        Describes the pixels that the host sends; None: the host writes planes instead.

    Members
    -------
    rx : in
        From the host, asynchronous; idle high.
    tx : out
        To the host.
    busy : out
        A program is running, or the external memory is not calibrated (yet, or because calibration
        failed).
    bus : `PinBus`, with external memory
    """

    def __init__(
        self,
        config: CoreConfig,
        *,
        clock_hz: int,
        baud: int,
        image: Mapping[Region, Sequence[int]] | None = None,
        chip: Chip | None = None,
        opening: Opening | None = None,
    ):
        bits, wanted = 0 if chip is None else chip.data_bits, config.external
        if bits != wanted:
            raise ValueError(
                f"a core with external memory of {wanted} bits must have a chip of as "
                f"many, not {bits}"
            )
        self._config = config
        self._chip = chip
        self._clock_hz = clock_hz
        self._divisor = divisor(clock_hz=clock_hz, baud=baud)
        self._image = image
        self._opening = opening
        super().__init__(
            {"rx": In(1, init=1), "tx": Out(1, init=1), "busy": Out(1)}
            | ({} if chip is None else {"bus": Out(PinBus(chip))})
        )

    @property
    def config(self) -> CoreConfig:
        return self._config

    def elaborate(self, _platform):
        m = Module()
        m.submodules.core = core = accelerator(self._config)(self._config, image=self._image)
        baked = 0 if self._image is None else tag(self._image)
        m.submodules.link = link = Link(
            divisor=self._divisor,
            tag=baked,
            address_bits=used_bits(self._config),
            registers=timing(self._config).reply,
            door=self._opening is not None,
        )
        m.submodules.receiver = receiver = uart.UartReceiver()
        m.submodules.transmitter = transmitter = uart.UartTransmitter()
        connect(m, receiver.o, link.i)
        connect(m, link.o, transmitter.i)
        active = core.busy
        if self._opening is None:
            connect(m, link.port, core.port)
        else:
            m.submodules.door = door = Door(self._opening)
            connect(m, link.port, door.link)
            connect(m, door.port, core.port)
            m.d.comb += door.busy.eq(core.busy)
            active = door.active
        m.d.comb += [
            receiver.divisor.eq(link.divisor),
            transmitter.divisor.eq(link.divisor),
            link.idle.eq(~transmitter.busy),
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
        ]
        if self._chip is None:
            m.d.comb += self.busy.eq(active)
        else:
            memory = ExternalMemory(chip=self._chip, clock_hz=self._clock_hz)
            m.submodules.memory = memory
            connect(m, core.memory, memory.tape)
            connect(m, core.host_memory, memory.host)
            connect(m, memory.bus, flipped(self.bus))
            m.d.comb += self.busy.eq(active | ~memory.tape.calibrated)
        return m
