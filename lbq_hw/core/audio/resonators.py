"""Turns samples into the energy of each band, without a multiplier."""

from amaranth import Array, Const, Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.audio.filter_bank import BANDS, FRACTION, FRAME, SAMPLE_BITS

__all__ = ["BandEnergy", "Resonators"]

_LARGEST = max(band.largest for band in BANDS)
_Y = signed(_LARGEST.bit_length() + 1)
_COEFFICIENT_BITS = FRACTION + 2  # c1 is signed and below 2, c2 below 1


class BandEnergy(data.StructLayout):
    """The sum of |y| of a band over a frame, with a mark on the last band of the frame."""

    def __init__(self):
        energy_bits = (FRAME * _LARGEST).bit_length()
        super().__init__({"band": range(len(BANDS)), "energy": energy_bits, "last": 1})


class Resonators(wiring.Component):
    """Takes samples, and offers the energies of all bands, in order, when a frame is full.

    One adder serves all bands. The two products of a band are computed together, bit by bit, from
    the highest bits of `c1` and `c2` down; both are in two's complement.

    Timing. A sample takes 14 cycles per band and one more, if the energies need not wait. A
    recording begins with a reset, after which the states are cleared in one cycle per band. No port
    depends combinationally on another.

    Members
    -------
    i : stream of signed samples
    o : stream of `BandEnergy`
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(signed(SAMPLE_BITS))),
                "o": Out(stream.Signature(BandEnergy())),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        band = Signal(range(len(BANDS)))
        sample = Signal(range(FRAME))  # its number in the frame
        last_band, last_sample = band == len(BANDS) - 1, sample == FRAME - 1
        energy = self.o.payload.energy
        kept = data.StructLayout({"before": _Y, "earlier": _Y, "energy": len(energy)})
        m.submodules.states = states = memory.Memory(shape=kept, depth=len(BANDS), init=[])
        write, state = states.write_port(), states.read_port()
        drive = Signal(signed(SAMPLE_BITS + 2))  # what the sample adds to every band
        back = Signal(signed(_Y.width + _COEFFICIENT_BITS + 1))
        y = Signal(_Y)
        m.d.comb += [
            write.addr.eq(band),
            state.addr.eq(band),
            y.eq(drive + (back >> FRACTION)),
            energy.eq(state.data.energy + Mux(y < 0, -y, y)),
            self.o.payload.band.eq(band),
            self.o.payload.last.eq(last_band),
        ]
        with m.FSM():
            with m.State("FORGET"):
                m.d.comb += write.en.eq(1)
                m.d.sync += band.eq(band + 1)
                with m.If(last_band):
                    m.d.sync += band.eq(0)
                    m.next = "SAMPLE"
            with m.State("SAMPLE"):
                self._take(m, drive)
            with m.State("READ"):
                m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                self._multiply(m, band, state.data, back)
            with m.State("KEEP"):
                m.d.comb += [
                    self.o.valid.eq(last_sample),
                    write.data.before.eq(y),
                    write.data.earlier.eq(state.data.before),
                    write.data.energy.eq(Mux(last_sample, 0, energy)),
                ]
                with m.If(~last_sample | self.o.ready):
                    m.d.comb += write.en.eq(1)
                    m.d.sync += band.eq(band + 1)
                    m.next = "READ"
                    with m.If(last_band):
                        m.d.sync += band.eq(0)
                        m.d.sync += sample.eq(sample + 1)
                        m.next = "SAMPLE"
        return m

    def _take(self, m, drive):
        """Compute `drive`: the rise from the previous sample, minus the rise two samples ago."""
        before = Signal.like(self.i.payload)
        rise, rise_before, rise_earlier = (
            Signal(signed(SAMPLE_BITS + 1), name=name)
            for name in ("rise", "rise_before", "rise_earlier")
        )
        m.d.comb += [self.i.ready.eq(1), rise.eq(self.i.payload - before)]
        with m.If(self.i.valid):
            m.d.sync += [
                before.eq(self.i.payload),
                rise_before.eq(rise),
                rise_earlier.eq(rise_before),
                drive.eq(rise - rise_earlier),
            ]
            m.next = "READ"

    def _multiply(self, m, band, state, back):
        """``c1 * before - c2 * earlier``: one bit of both coefficients per cycle."""
        highest = _COEFFICIENT_BITS - 1
        bit = Signal(range(_COEFFICIENT_BITS), init=highest)
        c1, c2 = (
            Array(Const(getattr(each, name), _COEFFICIENT_BITS) for each in BANDS)[band]
            for name in ("c1", "c2")
        )
        added = Mux(c1.bit_select(bit, 1), state.before, 0)
        taken = Mux(c2.bit_select(bit, 1), state.earlier, 0)
        m.d.sync += [back.eq((back << 1) + added - taken), bit.eq(bit - 1)]
        with m.If(bit == highest):
            m.d.sync += back.eq(-added - taken)
        with m.If(bit == 0):
            m.d.sync += bit.eq(highest)
            m.next = "KEEP"
