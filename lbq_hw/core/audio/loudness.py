"""Turns energies into levels, relative to a ceiling that follows the loudest band."""

from amaranth import Array, Const, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.audio.filter_bank import BANDS, FALL, FLOOR, LEVELS
from lbq_hw.core.audio.resonators import BandEnergy

__all__ = ["BandLevel", "Loudness"]


class BandLevel(data.StructLayout):
    """The level of a band in a frame, with a mark on the last band of the frame."""

    def __init__(self):
        super().__init__({"band": range(len(BANDS)), "level": range(LEVELS + 1), "last": 1})


class Loudness(wiring.Component):
    """Takes the energies of a frame, and then offers its levels.

    The logarithm of an energy comes from shifts: the energy is shifted right by the gain of its
    band, and then until one bit is left; only the latter shifts are counted.

    Timing. An energy takes one cycle per bit and two more. One level is offered per two cycles. No
    port depends combinationally on another. A recording begins with a reset.

    Members
    -------
    i : stream of `BandEnergy`
    o : stream of `BandLevel`
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(BandEnergy())),
                "o": Out(stream.Signature(BandLevel())),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        energy = Signal.like(self.i.payload.energy)
        band, last = Signal(range(len(BANDS))), Signal()
        gains = [each.gain for each in BANDS]
        gain = Signal(range(max(gains) + 1))
        loudness = Signal(range(2 * len(energy)))
        loudest = Signal.like(loudness)
        m.submodules.heard = heard = memory.Memory(
            shape=loudness.shape(), depth=len(BANDS), init=[]
        )
        write, read = heard.write_port(), heard.read_port()
        m.d.comb += [
            write.addr.eq(band),
            write.data.eq(loudness),
            read.addr.eq(band),
        ]
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [
                    energy.eq(self.i.payload.energy),
                    band.eq(self.i.payload.band),
                    last.eq(self.i.payload.last),
                    gain.eq(Array(Const(each) for each in gains)[self.i.payload.band]),
                    loudness.eq(0),
                ]
                with m.If(self.i.valid):
                    m.next = "SHIFT"
            with m.State("SHIFT"):
                m.d.sync += energy.eq(energy >> 1)
                with m.If(gain != 0):
                    m.d.sync += gain.eq(gain - 1)
                with m.Elif(energy[1:].any()):
                    # Its lowest bit is the one below the highest if this is the last shift.
                    m.d.sync += loudness.eq((((loudness >> 1) + 1) << 1) | energy[0])
                with m.Else():
                    m.next = "KEEP"
            with m.State("KEEP"):
                m.d.comb += write.en.eq(1)
                with m.If(loudness > loudest):
                    m.d.sync += loudest.eq(loudness)
                m.next = "TAKE"
                with m.If(last):
                    m.d.sync += band.eq(0)
                    m.next = "READ"
            self._offer(m, band, read, loudest)
        return m

    def _offer(self, m, band, read, loudest):
        """Move the ceiling, then offer one level after the other."""
        ceiling = Signal(range(FALL << len(loudest)), init=FLOOR * FALL)
        below = Signal(range(-LEVELS, 1 << len(loudest)))
        settled = Signal()
        level = self.o.payload
        m.d.comb += [
            below.eq(ceiling // FALL - read.data),
            level.band.eq(band),
            level.level.eq(Mux(below > LEVELS, 0, LEVELS - below)),
            level.last.eq(band == len(BANDS) - 1),
        ]
        with m.State("READ"):
            m.d.sync += settled.eq(1)
            with m.If(~settled):
                with m.If(loudest * FALL >= ceiling):
                    m.d.sync += ceiling.eq(loudest * FALL)
                with m.Elif(ceiling != FLOOR * FALL):
                    m.d.sync += ceiling.eq(ceiling - 1)
            m.next = "OFFER"
        with m.State("OFFER"):
            m.d.comb += self.o.valid.eq(1)
            with m.If(self.o.ready):
                m.d.sync += band.eq(band + 1)
                m.next = "READ"
                with m.If(level.last):
                    m.d.sync += [loudest.eq(0), settled.eq(0)]
                    m.next = "TAKE"
