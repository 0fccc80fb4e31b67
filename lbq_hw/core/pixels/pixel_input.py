"""The input block: pixels from a stream or packed in words become slices of plane words."""

from amaranth import Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.core.pixels.gearbox import Gearbox
from lbq_hw.core.pixels.planes import PixelPlanes, PlaneSlice
from lbq_hw.core.pixels.windows import Pixel, PixelWindows
from lbq_hw.isa.pixels import PixelLayout

__all__ = ["PixelInput"]


class PixelInput(wiring.Component):
    """Takes each pixel once, and copies it to all places in the planes where the first layer reads
    it.

    Pixels come as a stream, as from a camera, or packed in words, from a bus or a serial line.

    Blocks: `Gearbox` -> `PixelWindows` -> `PixelPlanes`.

    Timing. As in its blocks. Nothing is offered at ``o`` before the first rows of the kernel were
    taken.

    Parameters
    ----------
    layout : `PixelLayout`
    word_bits : int
        Bits of an item of ``words``.

    Members
    -------
    by_words : in
        Pixels come from ``words``, not from ``pixels``; changes only with ``clear``.
    clear : in
        Start again with the first pixel of a run: all earlier pixels are dropped, also from ``o``.
    last : out
        The last pixel of a run is taken in this cycle.
    working : out
        Not all pixels of the words that were taken are processed yet.
    pixels : stream of `Pixel`
    words : stream of words
        Pixels packed without gaps, lowest bits first. The first pixel of a run begins a new word;
        the bits after the last pixel of a run's last word are dropped.
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
