"""The core as one module for a user's design."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from amaranth import Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from lbq_hw.config import CoreConfig
from lbq_hw.core.accelerator import Accelerator, TapeAccelerator, accelerator
from lbq_hw.core.bus.axi4lite import Axi4LiteSlave, axi4lite_members
from lbq_hw.core.bus.entrance import Entrance
from lbq_hw.core.bus.feeder import Feeder
from lbq_hw.core.bus.request import RequestSignature
from lbq_hw.core.bus.tape_fetch import TapeFetch
from lbq_hw.core.bus.wishbone import WishboneSlave, wishbone_members
from lbq_hw.core.host.switch import PortSwitch
from lbq_hw.core.pixels.pixel_input import PixelInput
from lbq_hw.isa import bus
from lbq_hw.isa.pixels import PixelLayout
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["BUSES", "Axi4LiteCore", "BusCore", "PlainCore", "WishboneCore"]

_BYTE = 8


class _OnChip:
    """A core with its program in its own memories: it needs no further ports."""

    def __init__(self, config: CoreConfig):
        self._config = config

    def members(self):
        """Further ports of the module."""
        return {}

    def connect(self, m, top, core):
        """Connect these ports to the core."""


class _OnTape(_OnChip):
    """A core that reads its program through a stream of addresses and a stream of words."""

    def members(self):
        bits = -(-TapeFetch.ADDRESS_BITS // _BYTE) * _BYTE
        return (
            {"tape_works": In(1)}
            | _axis("m_axis_tape_address", Out, bits)
            | _axis("s_axis_tape_word", In, self._config.external)
        )

    def connect(self, m, top, core):
        m.submodules.tape = tape = TapeFetch(word_bits=self._config.external)
        connect(m, core.memory, tape.tape)
        connect(m, core.host_memory, tape.host)
        m.d.comb += [
            tape.works.eq(top.tape_works),
            top.m_axis_tape_address_tvalid.eq(tape.address.valid),
            top.m_axis_tape_address_tdata.eq(tape.address.payload),
            tape.address.ready.eq(top.m_axis_tape_address_tready),
            tape.words.valid.eq(top.s_axis_tape_word_tvalid),
            tape.words.payload.eq(top.s_axis_tape_word_tdata),
            top.s_axis_tape_word_tready.eq(Const(1)),
        ]


_MEMORIES = {Accelerator: _OnChip, TapeAccelerator: _OnTape}


class BusCore(wiring.Component):
    """`Accelerator` behind a bus, with its pixel input, its logits as a stream, and an interrupt.

    An input that comes as pixels, from the stream or through the bus, is run as soon as its last
    pixel was taken. If the core holds its program after configuration, it needs no bus master:
    pixels come in one stream, and logits leave in the other.

    Parameters
    ----------
    config : `CoreConfig`
    layout : `PixelLayout`
        Layout of the program's input.
    logits : sequence of int
        As in `Feeder`.
    image : entries by region, or None
        As in `Accelerator`.

    Members
    -------
    s_axis_pixel_* : AXI-Stream, in
        A pixel per transfer, its channels side by side, the first one lowest; ``tuser`` marks the
        first pixel of an input, and may be 0.
    m_axis_logit_* : AXI-Stream, out
        32 bits of a logit per transfer, ``tlast`` with the last of a run. It must be taken, unless
        the pixels come through the bus.
    irq : out
        A run has ended, if the register ``interrupt`` enables it.
    busy, failed : out
        A run is in progress; the run of the last input that came as pixels ended with an error.
    tape_works, m_axis_tape_address_*, s_axis_tape_word_* : with external memory
        As in `TapeFetch`.
    """

    def __init__(
        self,
        config: CoreConfig,
        *,
        layout: PixelLayout,
        logits: Sequence[int],
        image: Mapping[Region, Sequence[int]] | None = None,
    ):
        self._config = config
        self._memory = _MEMORIES[accelerator(config)](config)
        self._layout = layout
        self._logits = list(logits)
        self._image = image
        pixel_bits = -(-layout.pixel_bits // _BYTE) * _BYTE
        super().__init__(
            self._bus_members(bus.address_bits(config) - bus.BYTE_BITS)
            | _axis("s_axis_pixel", In, pixel_bits, "tuser")
            | _axis("m_axis_logit", Out, SLICE, "tlast")
            | {"irq": Out(1), "busy": Out(1), "failed": Out(1)}
            | self._memory.members()
        )

    def _bus_members(self, address_bits):
        """The members of the bus."""
        raise NotImplementedError

    def _connect_bus(self, m, entrance):
        """Connect the bus."""
        raise NotImplementedError

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        m.submodules.core = core = accelerator(c)(c, image=self._image)
        m.submodules.switch = switch = PortSwitch()
        m.submodules.entrance = entrance = Entrance(c)
        m.submodules.feeder = feeder = Feeder(c, logits=self._logits)
        m.submodules.pixels = pixels = PixelInput(self._layout, word_bits=SLICE)
        connect(m, entrance.port, switch.first)
        connect(m, feeder.port, switch.second)
        connect(m, switch.port, core.port)
        connect(m, pixels.o, feeder.i)
        connect(m, entrance.words, pixels.words)
        m.d.comb += [
            entrance.busy.eq(core.busy | feeder.active),
            entrance.feeding.eq(feeder.feeding),
            entrance.input_done.eq(feeder.done),
            feeder.busy.eq(core.busy),
            feeder.by_host.eq(entrance.by_words),
            pixels.by_words.eq(entrance.by_words),
            pixels.clear.eq(entrance.clear),
            pixels.pixels.valid.eq(self.s_axis_pixel_tvalid),
            pixels.pixels.payload.data.eq(self.s_axis_pixel_tdata),
            pixels.pixels.payload.first.eq(self.s_axis_pixel_tuser),
            self.s_axis_pixel_tready.eq(pixels.pixels.ready),
            self.m_axis_logit_tvalid.eq(feeder.o.valid),
            self.m_axis_logit_tdata.eq(feeder.o.payload.data),
            self.m_axis_logit_tlast.eq(feeder.o.payload.last),
            feeder.o.ready.eq(self.m_axis_logit_tready),
            self.irq.eq(entrance.irq),
            self.busy.eq(entrance.busy),
            self.failed.eq(feeder.failed),
        ]
        self._connect_bus(m, entrance)
        self._memory.connect(m, self, core)
        return m


class PlainCore(BusCore):
    """A `BusCore` with `RequestSignature` as its bus: ``valid`` until ``ack``."""

    def _bus_members(self, address_bits):
        return {
            f"bus_{name}": member.flip()
            for name, member in RequestSignature(address_bits).members.items()
        }

    def _connect_bus(self, m, entrance):
        for name, member in entrance.request.signature.members.items():
            ours, theirs = getattr(self, f"bus_{name}"), getattr(entrance.request, name)
            m.d.comb += ours.eq(theirs) if member.flow is Out else theirs.eq(ours)


class WishboneCore(BusCore):
    """A `BusCore` with `WishboneSlave`; its address counts 32-bit words."""

    NAMES = MappingProxyType(
        {
            "cyc": "wb_cyc",
            "stb": "wb_stb",
            "we": "wb_we",
            "adr": "wb_adr",
            "sel": "wb_sel",
            "datwr": "wb_dat_w",
            "datrd": "wb_dat_r",
            "ack": "wb_ack",
            "err": "wb_err",
        }
    )
    """Ports of the module, by the slave's names for them."""

    def _bus_members(self, address_bits):
        members = wishbone_members(address_bits)
        return {port: members[name] for name, port in self.NAMES.items()}

    def _connect_bus(self, m, entrance):
        m.submodules.bus = slave = WishboneSlave(address_bits=len(entrance.request.addr))
        connect(m, slave.request, entrance.request)
        for name, port in self.NAMES.items():
            _join(m, slave, name, getattr(self, port))


class Axi4LiteCore(BusCore):
    """A `BusCore` with `Axi4LiteSlave`; its ports begin with ``s_axi_``."""

    def _bus_members(self, address_bits):
        members = axi4lite_members(address_bits)
        return {f"s_axi_{name}": member for name, member in members.items()}

    def _connect_bus(self, m, entrance):
        m.submodules.bus = slave = Axi4LiteSlave(address_bits=len(entrance.request.addr))
        connect(m, slave.request, entrance.request)
        for name in slave.signature.members:
            if name != "request":
                _join(m, slave, name, getattr(self, f"s_axi_{name}"))


BUSES = {"plain": PlainCore, "wishbone": WishboneCore, "axi4lite": Axi4LiteCore}
"""The classes of `BusCore` by the name of the bus."""


def _axis(name, flow, bits, *more):
    """The members of an AXI-Stream."""
    back = Out if flow is In else In
    return {
        f"{name}_tvalid": flow(1),
        f"{name}_tready": back(1),
        f"{name}_tdata": flow(bits),
        **{f"{name}_{one}": flow(1) for one in more},
    }


def _join(m, slave, name, port):
    """Connect a port of the module to a port of the slave inside it."""
    inner = getattr(slave, name)
    if slave.signature.members[name].flow is In:
        m.d.comb += inner.eq(port)
    else:
        m.d.comb += port.eq(inner)
