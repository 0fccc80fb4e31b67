"""Writes level planes into the activation memory, one plane per cycle."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import granule_bits
from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.payload import LayerInfo, LevelPlanes, LevelWrite, PlaneWrite, WriteInfo
from lbq_hw.core.sizes import check_power, check_size

__all__ = ["CompactWriter", "Writer"]


class Writer(wiring.Component):
    """Writes the level planes of a tile, plane 0 first, each into its part of a plane word.

    Planes with ``restart`` are placed by their ``write``: plane k goes to word
    ``addr + k * stride``, at the granules ``[place, place + granules)``, with the layer's
    ``stride`` and ``granules``. Planes without ``restart`` belong to the next timestep and continue
    from there: their plane 0 goes ``stride`` words after the last plane of the previous timestep.

    The length of a chunk is a power of two of granules, and the chunk is aligned to its length. So
    the write data repeat the chunk over the whole word, and the write enables select the place:
    there is no shifter.

    Timing. Planes taken in cycle c are written from cycle c + 2 on, one per cycle. The next planes
    may arrive ``layer.planes`` cycles later, not sooner; then there is no gap between the writes.

    Parameters
    ----------
    lanes : int
        Channels P of a tile, a power of two.
    word : int
        Bits of a plane word, a power of two of at least 8, and of at least ``lanes``.
    plane_bits : int
        Bits of a plane word's address; addresses wrap around there.
    write : `WriteInfo`
        Layout of the member ``write``.
    layer : `LayerInfo`
        Layout of the port ``layer``; the largest number of planes follows from it.

    Members
    -------
    i : stream of `LevelPlanes`, always ready
    layer : in, `LayerInfo`
        The layer of all planes in flight: stable from the first of them to the last cycle of
        `busy`.
    o : stream of `PlaneWrite`, always ready
    busy : bit
        A write is in flight.
    """

    def __init__(
        self,
        *,
        lanes: int,
        word: int,
        plane_bits: int,
        write: WriteInfo,
        layer: LayerInfo,
    ):
        check_power("lanes", lanes)
        check_power("word", word, least=8)
        check_size("plane_bits", plane_bits)
        if word < lanes:
            raise ValueError(f"word must be at least the {lanes} lanes, not {word!r}")
        if not isinstance(write, WriteInfo):
            raise TypeError(f"write must be a WriteInfo, not {write!r}")
        if not isinstance(layer, LayerInfo):
            raise TypeError(f"layer must be a LayerInfo, not {layer!r}")
        self._granule = granule = granule_bits(lanes)
        levels = LevelPlanes(lanes=lanes, planes=layer["capacity"].width, write=write)
        plane = PlaneWrite(word=word, granule=granule, address_bits=plane_bits)
        super().__init__(
            self._taken(levels)
            | {
                "layer": In(layer),
                "o": Out(stream.Signature(plane, always_ready=True)),
                "busy": Out(1),
            }
        )

    def _taken(self, levels: LevelPlanes):
        """Members for the input of planes."""
        return {"i": In(stream.Signature(levels, always_ready=True))}

    @property
    def granule(self) -> int:
        """Bits written under one enable."""
        return self._granule

    def connect(self, m, neurons) -> None:
        """Connect the planes of a `NeuronArray` of the same profile."""
        wiring.connect(m, neurons.o_planes, self.i)

    def _hold(self, m):
        """Register the planes until they are written."""
        held = Signal(self.i.payload.planes.shape(), reset_less=True)
        with m.If(self.i.valid):
            m.d.sync += held.eq(self.i.payload.planes)
        return held

    def elaborate(self, platform):
        m = Module()
        held = self._hold(m)
        index = Signal(range(len(held)))
        active = Signal()
        write = Signal(self.i.payload.write.shape(), reset_less=True)
        layer = self.layer

        last = Signal()
        chunk = Signal(len(held[0]))
        repeated = Signal(len(self.o.payload.data))
        enable = Signal(len(self.o.payload.enable))

        m.d.comb += [
            last.eq(index == (layer.planes - 1)[: len(index)]),
            chunk.eq(held[index]),
            self.busy.eq(active | self.o.valid),
        ]
        with m.Switch(layer.granules):
            for log in reversed(range(len(layer.granules))):
                length = self._granule << log
                with m.Default() if log == 0 else m.Case(1 << log):
                    m.d.comb += repeated.eq(chunk[:length].replicate(len(repeated) // length))
        for granule, bit in enumerate(enable):
            m.d.comb += bit.eq((granule & -layer.granules)[: len(write.place)] == write.place)

        m.d.sync += self.o.valid.eq(active)
        with m.If(active):
            m.d.sync += [
                index.eq(index + 1),
                write.addr.eq(write.addr + layer.stride),
                self.o.payload.addr.eq(write.addr),
                self.o.payload.data.eq(repeated),
                self.o.payload.enable.eq(enable),
                self.o.payload.first.eq(write.first),
            ]
            with m.If(last):
                m.d.sync += [active.eq(0), index.eq(0)]
        with m.If(self.i.valid):
            m.d.sync += active.eq(1)
            with m.If(self.i.payload.restart):
                m.d.sync += write.eq(self.i.payload.write)
        must(m, platform, ~self.i.valid | ~active | last, "planes come before the last are written")
        return m


class CompactWriter(Writer):
    """As `Writer`, for planes that arrive one per cycle, as from `CompactNeurons`, and are not
    stored here.

    Timing. As in `Writer`; plane k is read in cycle c + 1 + k.

    Members
    -------
    i : stream of `LevelWrite`, always ready
    planes : in, array of ``lanes`` bits each
        The planes of the item that was taken.
    """

    def _taken(self, levels: LevelPlanes):
        write = LevelWrite(write=levels["write"].shape)
        return {
            "i": In(stream.Signature(write, always_ready=True)),
            "planes": In(levels["planes"].shape),
        }

    def connect(self, m, neurons) -> None:
        super().connect(m, neurons)
        m.d.comb += self.planes.eq(neurons.planes)

    def _hold(self, _m):
        return self.planes
