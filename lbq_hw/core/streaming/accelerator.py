"""The streaming core: everything behind one memory-mapped port."""

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out, connect

from lbq_hw.config import address_bits
from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.host.port import PortSignature
from lbq_hw.core.stream.queue import ShortQueue
from lbq_hw.core.streaming.collector import MapCollector
from lbq_hw.core.streaming.event_input import EventInput
from lbq_hw.core.streaming.finder import VisitFinder
from lbq_hw.core.streaming.lanes import StreamLanes
from lbq_hw.core.streaming.layouts import Mark, Place, WordItem
from lbq_hw.core.streaming.loader import RecordLoader
from lbq_hw.core.streaming.neuron_pipe import NeuronPipe
from lbq_hw.core.streaming.neuron_sequencer import NeuronSequencer
from lbq_hw.core.streaming.port import StreamPort
from lbq_hw.core.streaming.row_fetch import RowFetch
from lbq_hw.core.streaming.scanner import WordScanner
from lbq_hw.core.streaming.tap_fetch import TapFetch
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.records import StreamRegion, depths, widths

__all__ = ["MARKS", "PLACES", "WORDS", "StreamAccelerator"]

PLACES, MARKS, WORDS = 4, 8, 4
"""Depths of the queues in front of the row fetch, the neurons and the scanner."""


class StreamAccelerator(wiring.Component):
    """Executes a `StreamProgram` step by step, and keeps its membranes from one step to the next.

    The host writes the program once. For each step it writes the step's events, starts the step,
    waits for ``busy`` to fall, and reads the logits from the membranes of the readout.

    Stages: `VisitFinder` (positions) -> `RowFetch` (rows of windows) -> `TapFetch` (level words) ->
    `WordScanner` (events) -> `StreamLanes` (sums) -> `NeuronSequencer` (groups) -> `NeuronPipe`
    (membranes) -> `MapCollector` (levels, maps). Queues let each stage run ahead of the next stage.
    A layer begins when the previous layer has written all its results.

    Parameters
    ----------
    config : `StreamConfig`

    Members
    -------
    port : `PortSignature`
    busy : out
        A step or a reset runs.
    """

    def __init__(self, config: StreamConfig):
        self._config = config
        super().__init__({"port": In(PortSignature()), "busy": Out(1)})

    @property
    def config(self) -> StreamConfig:
        return self._config

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        m.submodules.host = host = StreamPort(c)
        m.submodules.loader = loader = RecordLoader(c)
        m.submodules.finder = finder = VisitFinder(c)
        m.submodules.places = places = ShortQueue(Place(c), depth=PLACES)
        m.submodules.marks = marks = ShortQueue(Mark(c), depth=MARKS)
        m.submodules.row_fetch = row_fetch = RowFetch(c)
        m.submodules.tap_fetch = tap_fetch = TapFetch(c)
        m.submodules.words = words = ShortQueue(WordItem(c), depth=WORDS)
        m.submodules.scanner = scanner = WordScanner(c)
        m.submodules.lanes = lanes = StreamLanes(c)
        m.submodules.sequencer = sequencer = NeuronSequencer(c)
        m.submodules.pipe = pipe = NeuronPipe(c)
        m.submodules.collector = collector = MapCollector(c)
        m.submodules.events = events = EventInput(c)

        connect(m, wiring.flipped(self.port), host.port)
        connect(m, places.o, row_fetch.i)
        connect(m, row_fetch.o, tap_fetch.i)
        connect(m, tap_fetch.o, words.i)
        connect(m, words.o, scanner.i)
        connect(m, scanner.o, lanes.i)
        connect(m, marks.o, sequencer.i_mark)
        connect(m, lanes.o, sequencer.i_sums)
        connect(m, sequencer.o, pipe.i)
        connect(m, pipe.o, collector.i)
        connect(m, host.events, events.i)
        connect(m, host.writes.weights, lanes.weights)
        connect(m, host.writes.params, pipe.params)
        connect(m, host.reads.membranes, pipe.membranes)
        for block in (finder, row_fetch, tap_fetch, sequencer, pipe, collector):
            if "layer" in block.signature.members:
                m.d.comb += block.layer.eq(loader.layer)
            if "paths" in block.signature.members:
                m.d.comb += block.paths.eq(loader.paths)
            if "start" in block.signature.members:
                m.d.comb += block.start.eq(loader.starts)
        m.d.comb += [
            pipe.sums.eq(sequencer.o_sums),
            pipe.param.eq(sequencer.param),
            collector.levels.eq(pipe.levels),
            collector.hot.eq(pipe.hot),
            loader.start.eq(host.step),
            loader.done.eq(collector.done),
            host.layer.eq(loader.number),
            host.overflow.eq(pipe.overflow),
            self.busy.eq(host.busy),
        ]
        self._fork(m, finder.o, places.i, marks.i)
        self._time(m, host, finder, sequencer)
        clearing, place = self._reset(m, host, loader)
        m.d.comb += [
            sequencer.clear.eq(clearing),
            sequencer.clear_addr.eq(place),
            pipe.clear.eq(clearing),
            pipe.clear_addr.eq(place),
        ]
        self._tables(m, host, loader, row_fetch, tap_fetch, events)
        self._levels(m, host, tap_fetch, collector, events)
        self._maps(m, host, finder, row_fetch, collector, events, loader, clearing, place)
        return m

    def _fork(self, m, visits, places, marks):
        """Send each mark to the neurons and, if it is a visit, its place to the row fetch, in the
        same cycle. A queue's ``ready`` stays 1 until an item is taken, so no ``valid`` is
        withdrawn.
        """
        visit, mark = visits.payload, visits.payload.mark
        m.d.comb += [
            visits.ready.eq(marks.ready & (~mark.real | places.ready)),
            marks.valid.eq(visits.valid & (~mark.real | places.ready)),
            places.valid.eq(visits.valid & mark.real & marks.ready),
            marks.payload.eq(mark),
            places.payload.row.eq(visit.row),
            places.payload.column.eq(mark.column),
        ]

    def _time(self, m, host, finder, sequencer):
        """Pass on the number of the step, and derive the position of the patrol from it."""
        bits = self._config.patrol_bits
        before = host.steps - 1
        m.d.comb += [
            sequencer.now.eq(host.steps),
            finder.patrol.row.eq(before[:bits]),
            finder.patrol.column.eq(before[bits : 2 * bits]),
        ]

    def _reset(self, m, host, loader):
        """Clear one word of each memory per cycle, until the longest memory is done."""
        c = self._config
        last = max(c.membrane_words, c.positions, c.map_rows) - 1
        clearing, place = Signal(), Signal(range(last + 1))
        m.d.comb += host.finished.eq(loader.finished | (clearing & (place == last)))
        with m.If(host.reset):
            m.d.sync += [clearing.eq(1), place.eq(0)]
        with m.Elif(clearing):
            m.d.sync += [place.eq(place + 1), clearing.eq(place != last)]
        return clearing, place

    def _memory(self, region: StreamRegion, width: int | None = None):
        c = self._config
        shape = widths(c)[region] if width is None else width
        return memory.Memory(shape=shape, depth=depths(c)[region], init=[], attrs=APART)

    def _tables(self, m, host, loader, row_fetch, tap_fetch, events):
        """Memories that only the host writes."""
        m.submodules.record_store = record_store = self._memory(StreamRegion.RECORDS)
        m.submodules.tap_store = tap_store = self._memory(StreamRegion.TAPS)
        m.submodules.row_store = row_store = self._memory(StreamRegion.ROWS)
        connect(m, host.writes.records, record_store.write_port())
        connect(m, host.writes.taps, tap_store.write_port())
        connect(m, host.writes.rows, row_store.write_port())
        connect(m, loader.words, record_store.read_port())
        connect(m, tap_fetch.taps, tap_store.read_port())
        _shared(m, row_store.read_port(), row_fetch.rows, events.rows)

    def _levels(self, m, host, tap_fetch, collector, events):
        m.submodules.level_store = store = self._memory(StreamRegion.LEVELS)
        _shared(m, store.read_port(), tap_fetch.levels, host.reads.levels)
        write = store.write_port()
        m.d.comb += [
            write.addr.eq(Mux(host.busy, collector.o_levels.addr, events.o_levels.addr)),
            write.data.eq(Mux(host.busy, collector.o_levels.data, events.o_levels.data)),
            write.en.eq(collector.o_levels.en | events.o_levels.en),
        ]

    def _maps(self, m, host, finder, row_fetch, collector, events, loader, clearing, place):
        m.submodules.map_store = maps = self._memory(StreamRegion.MAPS)
        m.submodules.hot_store = hot = self._memory(StreamRegion.MAPS)
        connect(m, finder.maps, maps.read_port())
        connect(m, finder.hot, hot.read_port())
        _shared(m, maps.read_port(), row_fetch.maps, events.maps, host.reads.maps)
        write, heat = maps.write_port(), hot.write_port()
        rows = address_bits(self._config.map_rows)
        within = place < self._config.map_rows
        m.d.comb += [
            write.addr.eq(collector.o_maps.addr),
            write.data.eq(collector.o_maps.data),
            write.en.eq(collector.o_maps.en),
            heat.addr.eq(collector.o_maps.addr),
            heat.data.eq(collector.hot_row),
            heat.en.eq(collector.o_maps.en),
        ]
        with m.If(~host.busy):
            m.d.comb += [
                write.addr.eq(events.o_maps.addr),
                write.data.eq(events.o_maps.data),
                write.en.eq(events.o_maps.en),
            ]
        with m.If(loader.clear):
            m.d.comb += [write.addr.eq(loader.clear_addr), write.data.eq(0), write.en.eq(1)]
        with m.If(clearing):
            for target in (write, heat):
                m.d.comb += [target.addr.eq(place[:rows]), target.data.eq(0), target.en.eq(within)]


def _shared(m, port, *users):
    """Share a read port between several blocks, only one of which reads at a time."""
    addr, en = 0, 0
    for user in users:
        addr = Mux(user.en, user.addr, addr)
        en = en | user.en
        m.d.comb += user.data.eq(port.data)
    m.d.comb += [port.addr.eq(addr), port.en.eq(en)]
