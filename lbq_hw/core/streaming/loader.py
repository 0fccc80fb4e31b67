"""Runs the layers of a program: loads a layer's records, starts it, and waits for its end."""

from amaranth import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import address_bits
from lbq_hw.core.streaming.layouts import layer_of, paths_of
from lbq_hw.isa.record import SLICE
from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig

__all__ = ["RecordLoader"]


class RecordLoader(wiring.Component):
    """Loads the LAYER record and the PATH records of a layer, starts it, and goes on to the next
    when it is done. After the last one it clears the rows of the input's map.

    Timing. From the cycle after ``start`` or ``done`` on, one record word is requested per cycle. A
    layer starts 2 cycles after its last word was requested. After the last ``done``, one row of the
    input's map is cleared per cycle; ``finished`` is 1 with the last row.

    Members
    -------
    start : in
        A step begins.
    done : in
        The layer is done.
    layer, paths : out
    starts : out
        Strobe: the layer begins.
    number : out
        Number of the layer.
    clear, clear_addr : out
        Clear a row of the input's map.
    finished : out
    words : read port
    """

    def __init__(self, config: StreamConfig):
        self._config = c = config
        super().__init__(
            {
                "start": In(1),
                "done": In(1),
                "layer": Out(layer_of(c)),
                "paths": Out(paths_of(c)),
                "starts": Out(1),
                "number": Out(8),
                "clear": Out(1),
                "clear_addr": Out(address_bits(c.map_rows)),
                "finished": Out(1),
                "words": In(
                    memory.ReadPort.Signature(addr_width=address_bits(c.record_words), shape=SLICE)
                ),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        own = records.words_of(records.layer_fields(c))
        parts = records.words_of(records.path_fields(c))
        layer = Signal(own * SLICE)
        paths = [Signal(parts * SLICE, name=f"path_{i}") for i in range(c.layer_paths)]
        fields = sum(field.bits for field in records.path_fields(c))
        m.d.comb += self.layer.eq(layer)
        m.d.comb += [self.paths[i].eq(path[:fields]) for i, path in enumerate(paths)]
        addr = Signal.like(self.words.addr)
        path, word, of_path = (
            Signal(range(c.layer_paths + 1)),
            Signal(range(max(own, parts))),
            Signal(),
        )
        arrives, at_path, at_word, at_layer = (
            Signal(),
            Signal.like(path),
            Signal.like(word),
            Signal(),
        )
        m.d.comb += [self.words.addr.eq(addr), self.words.en.eq(0)]
        m.d.sync += [
            arrives.eq(self.words.en),
            at_path.eq(path),
            at_word.eq(word),
            at_layer.eq(~of_path),
        ]
        with m.If(arrives):
            for i in range(own):
                with m.If(at_layer & (at_word == i)):
                    m.d.sync += layer.word_select(i, SLICE).eq(self.words.data)
            for number, record in enumerate(paths):
                for i in range(parts):
                    with m.If(~at_layer & (at_path == number) & (at_word == i)):
                        m.d.sync += record.word_select(i, SLICE).eq(self.words.data)
        with m.FSM():
            with m.State("Idle"), m.If(self.start):
                m.d.sync += [addr.eq(0), self.number.eq(0)]
                m.next = "Load"
            with m.State("Load"):
                m.d.comb += self.words.en.eq(1)
                m.d.sync += [addr.eq(addr + 1), word.eq(word + 1)]
                with m.If(~of_path), m.If(word == own - 1):
                    m.d.sync += [word.eq(0), of_path.eq(1), path.eq(0)]
                with m.Elif(word == parts - 1):
                    m.d.sync += [word.eq(0), path.eq(path + 1)]
                    with m.If(path == self.layer.paths_last):
                        m.d.sync += of_path.eq(0)
                        m.next = "Settle"
            with m.State("Settle"):
                m.next = "Start"
            with m.State("Start"):
                m.d.comb += self.starts.eq(1)
                m.next = "Run"
            with m.State("Run"), m.If(self.done):
                m.next = "Load"
                with m.If(self.layer.last):
                    m.d.sync += self.clear_addr.eq(0)
                    m.next = "Clear"
                with m.Else():
                    m.d.sync += self.number.eq(self.number + 1)
            with m.State("Clear"):
                m.d.comb += self.clear.eq(1)
                m.d.sync += self.clear_addr.eq(self.clear_addr + 1)
                with m.If(self.clear_addr == self.layer.input_last):
                    m.d.comb += self.finished.eq(1)
                    m.next = "Idle"
        return m
