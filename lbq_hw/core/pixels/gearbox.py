"""A gearbox: converts words of one width into words of another."""

from math import gcd

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.sizes import check_size

__all__ = ["Gearbox"]


class Gearbox(wiring.Component):
    """Turns words into narrower or wider words, lowest bits first, by granules.

    A granule has as many bits as the greatest common divisor of both widths, so that all shifts are
    by a constant: 32-bit words of a bus become pixels of 24 bits in granules of 8.

    Timing. One granule per cycle. A word is taken in the cycle after the last granule of the
    previous word was moved, or later. An output word is offered from the cycle after its last
    granule was moved until it is taken; no granule is moved meanwhile.

    Parameters
    ----------
    i_bits, o_bits : int
        Bits of an input word and of an output word.

    Members
    -------
    i, o : streams of words
    """

    def __init__(self, *, i_bits: int, o_bits: int):
        check_size("i_bits", i_bits)
        check_size("o_bits", o_bits)
        self._granule = gcd(i_bits, o_bits)
        super().__init__(
            {
                "i": In(stream.Signature(i_bits)),
                "o": Out(stream.Signature(o_bits)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        granule, word = self._granule, Signal.like(self.i.payload)
        many_in, many_out = len(word) // granule, len(self.o.payload) // granule
        left, moved = Signal(range(many_in + 1)), Signal(range(many_out))
        m.d.comb += self.i.ready.eq(left == 0)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [word.eq(self.i.payload), left.eq(many_in)]
        with m.Elif((left != 0) & ~self.o.valid):
            m.d.sync += [
                word.eq(word >> granule),
                self.o.payload.eq(Cat(self.o.payload, word[:granule])[granule:]),
                left.eq(left - 1),
                moved.eq(moved + 1),
            ]
            with m.If(moved == many_out - 1):
                m.d.sync += [moved.eq(0), self.o.valid.eq(1)]
        return m
