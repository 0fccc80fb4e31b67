"""The one input block: pixels from a stream or in words, and slices of plane words."""

from amaranth import Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.core.pixels.gearbox import Gearbox
from lbq_hw.core.pixels.planes import PixelPlanes, PlaneSlice
from lbq_hw.core.pixels.windows import Pixel, PixelWindows
from lbq_hw.isa.pixels import PixelLayout

__all__ = ["PixelInput"]


class PixelInput(wiring.Component):
    """Spreads pixels, each of which comes once, to where the first layer reads them.

    Pixels come as a stream (a camera's), or packed in words (a bus's, or bytes of a serial line).

    Blocks: `Gearbox` -> `PixelWindows` -> `PixelPlanes`.

    Timing. That of its blocks. ``o`` may be empty for as long as the kernel's first rows take.

    Parameters
    ----------
    layout : `PixelLayout`
    word_bits : int
        Bits of a word of ``words``.

    Members
    -------
    by_words : in
        Pixels come from ``words``, not from ``pixels``; changes only with ``clear``.
    clear : in
        Begin anew with the first pixel of a run: what came before is dropped, also from ``o``.
    last : out
        The last pixel of a run is taken in this cycle.
    working : out
        A pixel of a word that was taken is not taken yet.
    pixels : stream of `Pixel`
    words : stream of words
        Pixels packed without gaps, lowest bits first. The first pixel of a run begins a word: of a
        run's last word, bits behind its last pixel are dropped.
    o : stream of `PlaneSlice`
    """

    def __init__(self, layout: PixelLayout, *, word_bits: int):
        self._layout = layout
        self._word_bits = word_bits
        super().__init__(
            {
                "by_words": In(1),
                "clear": In(1),
                "last": Out(1),
                "working": Out(1),
                "pixels": In(stream.Signature(Pixel(layout))),
                "words": In(stream.Signature(word_bits)),
                "o": Out(stream.Signature(PlaneSlice())),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        gearbox = Gearbox(i_bits=self._word_bits, o_bits=self._layout.pixel_bits)
        windows, planes = PixelWindows(self._layout), PixelPlanes(self._layout)
        begins = Signal()
        m.submodules.gearbox = ResetInserter(self.clear | windows.last)(gearbox)
        m.submodules.windows = ResetInserter(begins)(windows)
        m.submodules.planes = ResetInserter(begins)(planes)
        connect(m, windows.o, planes.i)
        connect(m, planes.o, flipped(self.o))
        m.d.comb += [
            begins.eq(self.clear | windows.restart),
            self.last.eq(windows.last),
            self.working.eq(gearbox.o.valid | ~gearbox.i.ready),
            gearbox.i.payload.eq(self.words.payload),
            gearbox.i.valid.eq(self.words.valid),
            self.words.ready.eq(gearbox.i.ready & ~self.clear & ~windows.last),
            windows.i.payload.data.eq(
                Mux(self.by_words, gearbox.o.payload, self.pixels.payload.data)
            ),
            windows.i.payload.first.eq(self.pixels.payload.first & ~self.by_words),
            windows.i.valid.eq(
                Mux(self.by_words, gearbox.o.valid, self.pixels.valid) & ~self.clear
            ),
            gearbox.o.ready.eq(windows.i.ready & self.by_words & ~self.clear),
            self.pixels.ready.eq(windows.i.ready & ~self.by_words & ~self.clear),
        ]
        return m
