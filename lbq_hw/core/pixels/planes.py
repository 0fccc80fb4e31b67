"""Bit planes out of fields of view."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.pixels.windows import Window
from lbq_hw.isa import regions
from lbq_hw.isa.pixels import PixelLayout
from lbq_hw.isa.record import SLICE

__all__ = ["PixelPlanes", "PlaneSlice"]


class PlaneSlice(data.StructLayout):
    """A slice of a plane word.

    Members
    -------
    address : 28 bits
        Of the slice, in the region PLANES.
    data : 32 bits
    last : bit
        It is the last slice of a run's input.
    """

    def __init__(self):
        super().__init__({"address": regions.SHIFT, "data": SLICE, "last": 1})


class PixelPlanes(wiring.Component):
    """Gathers the bits of fields of view, plane by plane, and gives whole slices of plane words.

    The planes of a field of view are shifted into one register per plane, all of them at once, by
    `PixelLayout.granule` bits per cycle. Once a slice is full, the slices of all planes are given.
    Behind the last field of view of a row, zeros fill its last word.

    Timing. ``pitch / granule`` cycles to shift a field of view, one to take it, and one per plane
    and slice, if the slices are taken at once.

    Members
    -------
    i : stream of `Window`
    o : stream of `PlaneSlice`
    """

    def __init__(self, layout: PixelLayout):
        self._layout = layout
        super().__init__(
            {
                "i": In(stream.Signature(Window(layout))),
                "o": Out(stream.Signature(PlaneSlice())),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        layout, granule = self._layout, self._layout.granule
        planes, rows, base = layout.bits, layout.outputs[0], layout.base * layout.parts
        plane_slices = rows * layout.row_slices
        shifts, fills = layout.pitch // granule, layout.slice_bits // granule
        pending = [Signal(layout.pitch, name=f"pending_{k}") for k in range(planes)]
        full = [Signal(layout.slice_bits, name=f"slice_{k}") for k in range(planes)]
        left, fill = Signal(range(shifts + 1)), Signal(range(fills))
        row_ends = Signal()
        row, frame = Signal(range(rows)), Signal(range(layout.frames))
        part = Signal(range(layout.row_slices))
        plane = Signal(range(planes))
        at, of_plane = Signal(regions.SHIFT, init=base), Signal(regions.SHIFT)
        last_part = part == layout.row_slices - 1
        last_plane, last_row = plane == planes - 1, row == rows - 1
        last_frame = frame == layout.frames - 1
        m.d.comb += [
            self.o.payload.address.eq(at + of_plane),
            self.o.payload.data.eq(full[0]),
            self.o.payload.last.eq(last_plane & last_part & last_row & last_frame),
        ]
        with m.FSM():
            with m.State("WINDOW"):
                m.d.comb += self.i.ready.eq(1)
                for k in range(planes):
                    m.d.sync += pending[k].eq(self._plane(k))
                m.d.sync += [left.eq(shifts), row_ends.eq(self.i.payload.row_end)]
                with m.If(self.i.valid):
                    m.next = "SHIFT"
            with m.State("SHIFT"):
                for bits, kept in zip(pending, full, strict=True):
                    m.d.sync += [
                        bits.eq(bits >> granule),
                        kept.eq(Cat(kept, bits[:granule])[granule:]),
                    ]
                with m.If(left != 0):
                    m.d.sync += left.eq(left - 1)
                m.d.sync += fill.eq(fill + 1)
                with m.If(fill == fills - 1):
                    m.d.sync += fill.eq(0)
                    m.next = "SLICES"
                with m.Elif((left <= 1) & ~row_ends):
                    m.next = "WINDOW"
            with m.State("SLICES"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += [
                        Cat(full).eq(Cat(*full[1:], full[0])),
                        plane.eq(plane + 1),
                        of_plane.eq(of_plane + plane_slices),
                    ]
                    with m.If(last_plane):
                        m.d.sync += [
                            plane.eq(0), of_plane.eq(0), part.eq(part + 1), at.eq(at + 1)
                        ]  # fmt: skip
                        m.next = "SHIFT"
                        with m.If(last_part):
                            m.d.sync += [part.eq(0), row.eq(row + 1)]
                            m.next = "WINDOW"
                            with m.If(last_row):
                                other_planes = (planes - 1) * plane_slices
                                m.d.sync += [row.eq(0), at.eq(at + (1 + other_planes))]
                                m.d.sync += frame.eq(frame + 1)
                                with m.If(last_frame):
                                    m.d.sync += [frame.eq(0), at.eq(base)]
                        with m.Elif((left == 0) & ~row_ends):
                            m.next = "WINDOW"
        return m

    def _plane(self, k):
        """Plane k of the field of view that is offered."""
        layout, taps = self._layout, self.i.payload.taps
        return Cat(
            taps[tap][channel * layout.bits + k]
            for tap in range(layout.taps)
            for channel in range(layout.channels)
        )
