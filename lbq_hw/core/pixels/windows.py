"""Line buffer: turns a stream of pixels into the fields of view of the first layer."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.isa.pixels import PixelLayout

__all__ = ["Pixel", "PixelWindows", "Window"]


class Pixel(data.StructLayout):
    """One pixel of a picture.

    Members
    -------
    data : bits of a pixel
        Its channels side by side, the first one lowest.
    first : bit
        The first pixel of a run. If it comes early, the pixels of the unfinished run are dropped.
    """

    def __init__(self, layout: PixelLayout):
        super().__init__({"data": layout.pixel_bits, "first": 1})


class Window(data.StructLayout):
    """One field of view.

    Members
    -------
    taps : an array of pixels
        Row by row, the topmost and leftmost first.
    row_end : bit
        The last field of view of its row.
    """

    def __init__(self, layout: PixelLayout):
        super().__init__({"taps": data.ArrayLayout(layout.pixel_bits, layout.taps), "row_end": 1})


class PixelWindows(wiring.Component):
    """Walks over a picture with its border and padding, and offers every field of view.

    Pixels come row by row, from the top left, all frames of a run one after the other. A memory
    keeps the last rows, one fewer than the kernel has; registers keep the field of view. If a pixel
    has ``first`` where another pixel was expected, ``restart`` is 1 and the pixel is not taken; the
    block must then be reset.

    Timing. One position of the padded picture per cycle, as long as pixels come for the positions
    that need one. The first position of a run waits for the first pixel. A field of view is offered
    from the cycle after its last position on, and the walk waits until it is taken.

    Members
    -------
    restart : out
        A pixel with ``first`` is offered, and another one was expected.
    last : out
        The last pixel of a run is taken in this cycle.
    i : stream of `Pixel`
    o : stream of `Window`
    """

    def __init__(self, layout: PixelLayout):
        self._layout = layout
        super().__init__(
            {
                "restart": Out(1),
                "last": Out(1),
                "i": In(stream.Signature(Pixel(layout))),
                "o": Out(stream.Signature(Window(layout))),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        y = _Walk(m, self._layout, 0, "row")
        x = _Walk(m, self._layout, 1, "column")
        frame = Signal(range(self._layout.frames))
        last_frame = frame == self._layout.frames - 1
        inside, free, step, begun, accept = Signal(), Signal(), Signal(), Signal(), Signal()
        starts = Signal(init=1)  # at the first position of a run
        m.d.comb += [
            inside.eq(y.inside & x.inside),
            free.eq(~self.o.valid | self.o.ready),
            self.restart.eq(self.i.valid & self.i.payload.first & begun),
            # At the first position of a run the walk waits for the first pixel, even in padding.
            step.eq(free & (self.i.valid | ~(inside | starts)) & ~self.restart),
            self.i.ready.eq(free & inside & ~self.restart),
            accept.eq(self.i.valid & self.i.ready),
            self.last.eq(accept & y.last_inside & x.last_inside & last_frame),
        ]
        with m.If(accept):
            m.d.sync += begun.eq(~self.last)
        self._columns(m, y, x, step)
        with m.If(free):
            m.d.sync += self.o.valid.eq(step & y.hits & x.hits)
        with m.If(step):
            m.d.sync += self.o.payload.row_end.eq(x.last_hit)
            m.d.sync += starts.eq(x.last & y.last & last_frame)
            x.advance(m)
            with m.If(x.last):
                y.advance(m)
                with m.If(y.last):
                    m.d.sync += frame.eq(Mux(last_frame, 0, frame + 1))
        return m

    def _columns(self, m, y, x, step):
        """Shift one column of the kernel into the field of view."""
        layout, bits = self._layout, self._layout.pixel_bits
        rows, columns = layout.kernel
        border = Cat(Const(value, layout.bits) for value in layout.border_value)
        edge = Mux(y.framed & x.framed, border, 0) if layout.border else Const(0, bits)
        pixel = Mux(y.inside & x.inside, self.i.payload.data, edge)[:bits]
        above = self._above(m, x, step, pixel)
        column = [*above, pixel]
        taps = self.o.payload.taps
        with m.If(step):
            for row in range(rows):
                for place in range(columns):
                    tap = taps[row * columns + place]
                    if place == columns - 1:
                        m.d.sync += tap.eq(column[row])
                    else:
                        m.d.sync += tap.eq(taps[row * columns + place + 1])

    def _above(self, m, x, step, pixel):
        """The pixels above the current one, topmost first."""
        layout, bits, rows = self._layout, self._layout.pixel_bits, self._layout.kernel[0]
        if rows == 1:
            return []
        width = layout.padded[1]
        above = Signal((rows - 1) * bits)
        below = Cat(above, pixel)[bits:]
        if width == 1:
            with m.If(step):
                m.d.sync += above.eq(below)
        else:
            m.submodules.rows = kept = memory.Memory(shape=len(above), depth=width, init=[])
            write, read = kept.write_port(), kept.read_port()
            # The data read at the first position are never part of a field of view.
            m.d.comb += [
                write.addr.eq(x.at),
                write.data.eq(below),
                write.en.eq(step),
                read.addr.eq(x.next),
                read.en.eq(step),
                above.eq(read.data),
            ]
        return [above.word_select(row, bits) for row in range(rows - 1)]


class _Walk:
    """The position of the walk over a padded picture, in one direction."""

    def __init__(self, m, layout: PixelLayout, side: int, name: str):
        size = layout.padded[side]
        kernel, stride = layout.kernel[side], layout.stride[side]
        low = layout.padding[side] + layout.border
        high = size - low - 1
        self._first, self._stride = kernel - 1, stride
        self._before, self._before_high = (low - 1) % size, (high - 1) % size
        self.at = Signal(range(size), name=name)
        self.next = Signal(range(size), name=f"next_{name}")
        # Positions until a field of view is complete.
        self._wait = Signal(range(max(kernel, stride)), init=kernel - 1, name=f"{name}_wait")
        self.last = self.at == size - 1
        # Registers, because many signals depend on them in the same cycle.
        self.inside = Signal(init=low == 0, name=f"{name}_inside")
        self.last_inside = Signal(init=high == 0, name=f"{name}_last_inside")
        self.framed = (self.at >= layout.padding[side]) & (self.at < size - layout.padding[side])
        self.hits = self._wait == 0
        self.last_hit = self.at == (layout.outputs[side] - 1) * stride + kernel - 1
        m.d.comb += self.next.eq(Mux(self.last, 0, self.at + 1))

    def advance(self, m):
        m.d.sync += [
            self.at.eq(self.next),
            self._wait.eq(Mux(self.hits, self._stride - 1, self._wait - 1)),
            self.last_inside.eq(self.at == self._before_high),
        ]
        with m.If(self.at == self._before):
            m.d.sync += self.inside.eq(1)
        with m.Elif(self.last_inside):
            m.d.sync += self.inside.eq(0)
        with m.If(self.last):
            m.d.sync += self._wait.eq(self._first)
