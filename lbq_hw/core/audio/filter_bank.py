"""The filter bank of `lbq_hw.audio` in hardware: samples in, levels out."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.core.audio.loudness import Loudness
from lbq_hw.core.audio.resonators import Resonators

__all__ = ["FilterBank"]


class FilterBank(wiring.Component):
    """Takes the samples of a microphone, and offers the levels of each frame, band by band.

    The levels equal those of `lbq_hw.audio.FilterBank`, bit for bit. There is no multiplier.

    Timing. As in `Resonators` and `Loudness`. With 16 bands a sample takes 225 cycles, and the last
    sample of a frame up to 650 more, so that a clock of 7 MHz keeps up with 8,000 samples per
    second.

    Members
    -------
    i : stream of signed samples
    o : stream of `BandLevel`
    """

    def __init__(self):
        self._resonators = Resonators()
        self._loudness = Loudness()
        super().__init__(
            {"i": In(self._resonators.i.signature.flip()), "o": Out(self._loudness.o.signature)}
        )

    def elaborate(self, _platform):
        m = Module()
        m.submodules.resonators = self._resonators
        m.submodules.loudness = self._loudness
        connect(m, flipped(self.i), self._resonators.i)
        connect(m, self._resonators.o, self._loudness.i)
        connect(m, self._loudness.o, flipped(self.o))
        return m
