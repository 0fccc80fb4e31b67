"""Turns fields of view into bit planes."""

from amaranth import Cat, Const, Module, Mux, Signal
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
        Address of the slice, in the region PLANES.
    data : 32 bits
    last : bit
        The last slice of a run's input.
    """

    def __init__(self):
        super().__init__({"address": regions.SHIFT, "data": SLICE, "last": 1})


class PixelPlanes(wiring.Component):
    """Collects the bits of fields of view by plane, and offers complete slices of plane words.

    All planes of a field of view are shifted in parallel, each into its own register, by
    `PixelLayout.granule` bits per cycle. When a slice is full, the slices of all planes are
    offered. After the last field of view of a row, zeros fill the rest of its last word.

    Timing. A field of view takes ``pitch / granule`` cycles, and is taken from ``i`` in the first
    of them. A slice takes one cycle per plane, if it is taken at once.

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
        shifts, fills = layout.pitch // granule, layout.slice_bits // granule
        rest = [Signal(layout.pitch - granule, name=f"rest_{k}") for k in range(layout.bits)]
        full = [Signal(layout.slice_bits, name=f"slice_{k}") for k in range(layout.bits)]
        left, fill, row_ends = Signal(range(shifts)), Signal(range(fills)), Signal()
        place = _Place(m, layout)
        m.d.comb += [
            self.o.payload.data.eq(full[0]),
            self.o.payload.address.eq(place.address),
            self.o.payload.last.eq(place.last),
        ]

        def shift(planes):
            """Shift a granule of each plane."""
            for bits, remains, kept in zip(planes, rest, full, strict=True):
                m.d.sync += [
                    remains.eq(bits[granule:]),
                    kept.eq(Cat(kept, bits[:granule])[granule:]),
                ]
            m.d.sync += fill.eq(Mux(fill == fills - 1, 0, fill + 1))

        with m.FSM():
            with m.State("WINDOW"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    shift([self._plane(k) for k in range(layout.bits)])
                    m.d.sync += [left.eq(shifts - 1), row_ends.eq(self.i.payload.row_end)]
                    with m.If(fill == fills - 1):
                        m.next = "SLICES"
                    with m.Elif((shifts > 1) | self.i.payload.row_end):
                        m.next = "SHIFT"
            with m.State("SHIFT"):
                shift([Cat(bits, Const(0, granule)) for bits in rest])
                with m.If(left != 0):
                    m.d.sync += left.eq(left - 1)
                with m.If(fill == fills - 1):
                    m.next = "SLICES"
                with m.Elif((left <= 1) & ~row_ends):
                    m.next = "WINDOW"
            with m.State("SLICES"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += Cat(full).eq(Cat(*full[1:], full[0]))
                    place.advance(m)
                    with m.If(place.last_plane):
                        m.next = "SHIFT"
                        with m.If(place.last_part | ((left == 0) & ~row_ends)):
                            m.next = "WINDOW"
        return m

    def _plane(self, k):
        """Plane k of the field of view that is offered."""
        layout, taps = self._layout, self.i.payload.taps
        bits = [
            taps[tap][channel * layout.bits + k]
            for tap in range(layout.taps)
            for channel in range(layout.channels)
        ]
        return Cat(bits, Const(0, layout.pitch - len(bits)))


class _Place:
    """The address of a slice. Slices are written word by word, row by row and frame by frame; for
    each word, the slices of all planes.
    """

    def __init__(self, m, layout: PixelLayout):
        planes, rows, base = layout.bits, layout.outputs[0], layout.base * layout.parts
        self._of_plane = rows * layout.row_slices  # slices of a plane
        self._back = 1 - (planes - 1) * self._of_plane  # to the first plane of the next word
        self._base = base
        end = base + layout.frames * planes * self._of_plane
        self.address = Signal(range(end + 1), init=base)
        counts = {"plane": planes, "part": layout.row_slices, "row": rows, "frame": layout.frames}
        self._counters = [
            (Signal(range(count), name=name), count) for name, count in counts.items()
        ]
        ends = [counter == count - 1 for counter, count in self._counters]
        self.last_plane, self.last_part, last_row, last_frame = ends
        self._last_of_frame = self.last_plane & self.last_part & last_row
        self.last = Signal()
        m.d.comb += self.last.eq(self._last_of_frame & last_frame)

    def advance(self, m):
        moved = Const(1)
        for counter, count in self._counters:
            end = counter == count - 1
            with m.If(moved):
                m.d.sync += counter.eq(Mux(end, 0, counter + 1))
            moved = moved & end
        step = Mux(self._last_of_frame, 1, Mux(self.last_plane, self._back, self._of_plane))
        m.d.sync += self.address.eq(Mux(self.last, self._base, self.address + step))
