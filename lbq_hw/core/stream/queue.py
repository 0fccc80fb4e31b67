"""A queue in block memory."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.hints import APART, spared
from lbq_hw.core.sizes import check_size

__all__ = ["Queue", "ShortQueue"]


class Queue(wiring.Component):
    """A FIFO in a memory, whose output register offers the first item.

    It behaves like `amaranth.lib.fifo.SyncFIFOBuffered` in every cycle, but has no logic for a read
    and a write at the same address, which never happens.

    Timing. An item taken in cycle c is offered from cycle c + 2 on, one per cycle. No port depends
    combinationally on another.

    Parameters
    ----------
    shape : shape of an item
    depth : int
        Items that can wait, at least 3: with 2, only every other cycle would pass an item. One more
        than a power of two is cheapest.
    spare : bool
        Use no block RAM, see `spared`.

    Members
    -------
    i, o : streams
    """

    def __init__(self, shape, *, depth: int, spare: bool = False):
        check_size("depth", depth, least=3)
        self._depth = depth
        self._spare = spare
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    @property
    def depth(self) -> int:
        """Items that can wait."""
        return self._depth

    def elaborate(self, platform):
        m = Module()
        size = self._depth - 1
        payload = Value.cast(self.i.payload)
        m.submodules.store = store = memory.Memory(
            shape=len(payload),
            depth=size,
            init=[],
            attrs=spared(platform, size) if self._spare else APART,
        )
        write, read = store.write_port(), store.read_port()
        stored = Signal(range(size + 1))  # items that are stored and not offered yet
        put, get = Signal(), Signal()

        m.d.comb += [
            self.i.ready.eq(stored != size),
            put.eq(self.i.valid & self.i.ready),
            get.eq((stored != 0) & (~self.o.valid | self.o.ready)),
            write.en.eq(put),
            write.data.eq(payload),
            read.en.eq(get),
            Value.cast(self.o.payload).eq(read.data),
        ]
        m.d.sync += stored.eq(stored + put - get)
        for moves, port in ((put, write), (get, read)):
            with m.If(moves):
                last = port.addr == size - 1 if size & (size - 1) else 0
                m.d.sync += port.addr.eq(Mux(last, 0, port.addr + 1))
        must(m, platform, ~(put & get & (write.addr == read.addr)), "a word is read while written")
        with m.If(get):
            m.d.sync += self.o.valid.eq(1)
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m


class ShortQueue(wiring.Component):
    """A FIFO for few items: `amaranth.lib.fifo.SyncFIFO` with streams.

    Timing. An item taken in cycle c is offered from cycle c + 1 on, one per cycle. No port depends
    combinationally on another.

    Parameters
    ----------
    shape : shape of an item
    depth : int
        Items that can wait, at least 2.

    Members
    -------
    i, o : streams
    """

    def __init__(self, shape, *, depth: int):
        check_size("depth", depth, least=2)
        self._depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, _platform):
        m = Module()
        payload = Value.cast(self.i.payload)
        m.submodules.items = items = fifo.SyncFIFO(width=len(payload), depth=self._depth)
        m.d.comb += [
            items.w_data.eq(payload),
            items.w_en.eq(self.i.valid),
            self.i.ready.eq(items.w_rdy),
            Value.cast(self.o.payload).eq(items.r_data),
            self.o.valid.eq(items.r_rdy),
            items.r_en.eq(self.o.ready),
        ]
        return m
