"""The core: everything behind one memory-mapped port."""

from collections.abc import Mapping, Sequence

from amaranth import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out, connect

from lbq_hw import isa
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.core.external.host_memory_port import HostMemoryPort
from lbq_hw.core.external.tape_port import TapePort
from lbq_hw.core.external.tape_runner import TapeRunner
from lbq_hw.core.fabric.hints import APART, spared
from lbq_hw.core.host.port import HostPort, PortSignature
from lbq_hw.core.lanes.lane_array import LaneArray
from lbq_hw.core.memory.planes import PlaneMemory
from lbq_hw.core.memory.queue import Queue
from lbq_hw.core.memory.writer import Writer
from lbq_hw.core.neurons.neuron_array import NeuronArray
from lbq_hw.core.scan.scanner import Scanner
from lbq_hw.core.walk.walker import Walker
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region

__all__ = ["Accelerator", "beyond"]

_TABLES = {Region[kind.upper()]: kind for kind in isa.TABLES}
_BAKED = (*_TABLES, Region.WEIGHTS, Region.PARAMS)


class Accelerator(wiring.Component):
    """Executes a program of `lbq_hw.isa` on what lies in its memories.

    The host writes tables, weights, parameters and the input planes through ``port`` (see
    `HostPort`), starts, waits for ``busy`` to fall and reads the logits. Nothing hangs: an illegal
    program ends with an error code in a register.

    Stages: `Walker` (loops) -> `Scanner` (set bits) -> event FIFO -> `LaneArray` (sums) ->
    `NeuronArray` (levels) -> `Writer` -> `PlaneMemory`. Queues let those before the lanes run
    ahead; behind the lanes nothing waits, for these hold their sums back until there is room.
    Between two layers the walker waits until all is written.

    Parameters
    ----------
    config : `CoreConfig`
    image : mapping of `regions.Region` to entries, or None
        What tables, parameters and weights hold after configuration: one integer per entry, packed
        as it lies in memory (a weight row with lane 0 lowest); entries left out are 0.

    Members
    -------
    port : `HostPort` signature
    busy : bit
        A program runs.
    memory : `TapePort`, with external memory
    host_memory : `HostMemoryPort`, with external memory
        The same memory, for the host.
    """

    def __init__(self, config: CoreConfig, *, image: Mapping[Region, Sequence[int]] | None = None):
        self._config = config
        self._image = {region: list(entries) for region, entries in (image or {}).items()}
        for region, entries in self._image.items():
            if region not in _BAKED:
                raise ValueError(
                    f"an image must be of tables, weights or parameters, not {region!r}"
                )
            most = regions.entries(config)[region]
            if len(entries) > most:
                raise ValueError(
                    f"the image of {region.name} must have at most {most} entries, "
                    f"not {len(entries)}"
                )
        if config.external and self._image:
            raise ValueError(
                "a core with external memory must have its program on a tape, not in an image"
            )
        self._host = HostPort(config)
        memory = {"memory": Out(TapePort(config.external)), "host_memory": Out(HostMemoryPort())}
        super().__init__(
            {"port": In(PortSignature()), "busy": Out(1)} | (memory if config.external else {})
        )

    @property
    def config(self) -> CoreConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        c = self._config
        planes = {"word": c.word, "summary": c.summary, "words": c.plane_words}
        m.submodules.host = host = self._host
        tables = {kind: self._image.get(region, ()) for region, kind in _TABLES.items()}
        m.submodules.walker = walker = Walker(c, **tables)
        m.submodules.planes = store = PlaneMemory(**planes, granule=c.granule, far=c.spread)
        m.submodules.scanner = scanner = Scanner(
            **planes,
            lanes=c.lanes,
            rows=c.weight_rows,
            granule=c.granule,
            exponent_bits=c.exponent_bits,
            identities=c.identities > 0,
            stacks=c.stacks > 0,
            far=c.spread,
            pairs=c.pairs > 0,
        )
        m.submodules.lanes = lanes = LaneArray(
            lanes=c.lanes,
            rows=c.weight_rows,
            weight_bits=c.weight_bits,
            acc_bits=c.acc_bits,
            masks=c.identities > 0,
            whole_rows=c.external > 0,
            far_rows=c.spread and not c.external,
            pairs=c.pairs > 0,
            init=self._image.get(Region.WEIGHTS, ()),
        )
        layer, step = walker.o_layer_info.shape(), walker.o_step.payload.shape()
        m.submodules.neurons = neurons = NeuronArray(
            lanes=c.lanes,
            units=c.units,
            acc_bits=c.acc_bits,
            membrane_bits=c.membrane_bits,
            timesteps=c.timesteps,
            tiles=c.param_tiles,
            layer=layer,
            step=step,
            pools=c.window > 1,
            resets=c.resets > 0,
            partial_words=c.partial_words,
            partial_bits=c.partial_bits,
            fast=c.profile is not Profile.COMPACT,
            init=self._params(),
        )
        m.submodules.writer = writer = Writer(
            lanes=c.lanes,
            word=c.word,
            plane_bits=c.plane_address_bits,
            write=step["write"].shape,
            layer=layer,
            fast=c.profile is not Profile.COMPACT,
        )
        m.submodules.events = events = Queue(
            scanner.o_event.payload.shape(), depth=c.fifo_depth, spare=c.spread
        )

        connect(m, wiring.flipped(self.port), host.port)
        connect(m, walker.o_request, scanner.i_request)
        connect(m, walker.o_step, neurons.i_step)
        connect(m, scanner.o_event, events.i)
        connect(m, events.o, lanes.i_event)
        connect(m, scanner.word, store.word)
        connect(m, scanner.summary, store.summary)
        connect(m, lanes.o_sum, neurons.i_sum)
        connect(m, neurons.o_planes, writer.i)
        program = host
        if c.external:
            m.submodules.tape = program = TapeRunner(c)
        connect(m, program.records, walker.i_record)
        connect(m, program.weights, lanes.weights)
        connect(m, program.params, neurons.params)
        connect(m, host.planes, store.host)
        m.d.comb += [
            lanes.room.eq(neurons.room),
            neurons.layer.eq(walker.o_layer_info),
            writer.layer.eq(walker.o_layer_info),
        ]
        if c.profile is Profile.COMPACT:
            m.d.comb += writer.planes.eq(neurons.planes)
        if c.partial_words:
            m.d.comb += [neurons.i_valids.eq(lanes.o_valids), lanes.rooms.eq(neurons.rooms)]
        elif c.external:
            m.d.comb += lanes.rooms.eq(neurons.room.replicate(len(lanes.rooms)))
        # The host writes planes only while nothing runs, so the two never meet. Whether it does is
        # known late. Where memories fill the chip, a register drives them.
        writes = m.d.sync if c.spread else m.d.comb
        writes += [
            store.i_write.valid.eq(writer.o.valid | host.plane_write.valid),
            store.i_write.payload.eq(writer.o.payload),
        ]
        with m.If(~host.busy):
            writes += store.i_write.payload.eq(host.plane_write.payload)

        self._logits(m, platform, host, neurons)
        drained = self._control(m, host, walker, lanes, neurons, writer, events)
        self._count(m, host, scanner, lanes)
        m.d.comb += self.busy.eq(host.busy)
        if c.external:
            self._run_tape(m, program, host, walker, neurons, drained)
        else:
            self._run_layers(m, host, walker, drained)
        return m

    def _params(self):
        """Words of the parameter memory: bias, theta and reset of each of `units` channels."""
        c = self._config
        channels = [
            [isa.PARAM.decode(c, entry)[name] for name in ("bias", "theta", "reset")]
            for entry in self._image.get(Region.PARAMS, ())
        ]
        channels += [[0, 0, 0]] * (-len(channels) % c.units)
        return [
            [value for channel in channels[i : i + c.units] for value in channel]
            for i in range(0, len(channels), c.units)
        ]

    def _logits(self, m, platform, host, neurons):
        """Logits in the order in which they come, `units` per word."""
        c = self._config
        shape = neurons.o_logits.payload.shape()
        depth = c.logits // c.units
        attrs = spared(platform, depth) if c.spread else APART
        m.submodules.logits = store = memory.Memory(shape=shape, depth=depth, init=[], attrs=attrs)
        write = store.write_port()
        connect(m, host.logits, store.read_port())
        m.d.comb += [
            write.en.eq(neurons.o_logits.valid),
            write.data.eq(neurons.o_logits.payload),
        ]
        with m.If(host.start):
            m.d.sync += write.addr.eq(0)
        with m.Elif(neurons.o_logits.valid):
            m.d.sync += write.addr.eq(write.addr + 1)

    def _control(self, m, host, walker, lanes, neurons, writer, events):
        """Start, barrier and end. Returns whether all that follows the walker is idle."""
        c = self._config
        quiet = Signal()
        event = lanes.i_event
        stray = Signal()
        m.d.comb += [
            quiet.eq(~(lanes.busy | neurons.busy | writer.busy | events.o.valid)),
            host.layer.eq(walker.o_layer),
            walker.i_stop.eq(stray),
            host.stray.eq(stray & host.busy),
        ]
        # With external memory, a register is halfway from the lanes' events to those who stop.
        told = m.d.sync if c.external else m.d.comb
        told += stray.eq(event.valid & event.payload.mask.any() & beyond(c, event.payload))
        if not c.external:
            return quiet
        # A write in its second cycle is not seen by `quiet`, nor one in its third, since a register
        # comes first. Without external memory, nothing that follows looks at the planes so soon,
        # whether there is that register or not.
        # The last register is for the way from all these blocks to the tape's.
        drained, settled, was_quiet = Signal(), Signal(), Signal()
        m.d.sync += [was_quiet.eq(quiet), settled.eq(quiet & was_quiet)]
        m.d.sync += drained.eq(quiet & settled)
        return drained

    def _run_layers(self, m, host, walker, drained):
        """Layers follow each other until the last one is done."""
        m.d.comb += [
            walker.i_start.eq(host.start),
            walker.i_resume.eq(walker.layer_done & drained),
            host.finished.eq(host.busy & walker.o_done & ~walker.o_busy & drained),
            host.walk_error.eq(walker.o_error),
            host.walk_error_at.eq(walker.o_error_at),
        ]

    def _run_tape(self, m, tape, host, walker, neurons, drained):
        """Passes begin when the tape allows them."""
        connect(m, tape.i, wiring.flipped(self.memory.words))
        connect(m, host.host_memory, wiring.flipped(self.host_memory))
        m.d.comb += [
            host.calibrated.eq(self.memory.calibrated),
            host.aligned.eq(self.memory.aligned),
            host.passes.eq(tape.done),
            host.waits.eq(tape.waits),
            self.memory.start.eq(host.start),
            self.memory.stop.eq(~tape.reading & ~host.start),
            tape.start.eq(host.start),
            tape.paused.eq(walker.layer_done & drained),
            tape.over.eq(walker.o_done & ~walker.o_busy & drained),
            tape.idle.eq(~walker.o_busy & drained),
            tape.stray.eq(host.stray),
            tape.walk_error.eq(walker.o_error),
            tape.walk_error_at.eq(walker.o_error_at),
            walker.i_start.eq(tape.begin),
            walker.i_resume.eq(tape.begin),
            walker.i_stop.eq(host.stray | tape.stop),
        ]
        m.d.sync += [
            host.finished.eq(tape.finished),
            host.walk_error.eq(tape.error),
            host.walk_error_at.eq(tape.error_at),
        ]
        if self._config.partial_words:
            m.d.comb += neurons.begin.eq(tape.begin)

    def _count(self, m, host, scanner, lanes):
        """What the host's counters count."""
        event = lanes.i_event
        taken = event.valid & event.ready
        working = event.payload.mask.any()
        m.d.comb += [
            host.ticks.cycles.eq(1),
            host.ticks.events.eq(taken & working),
            host.ticks.null_events.eq(taken & ~working),
            host.ticks.scanner_stalls.eq(event.ready & ~event.valid),
            host.ticks.neuron_stalls.eq(~event.ready),
            host.ticks.words.eq(scanner.word_read),
            host.ticks.empty_requests.eq(scanner.span_empty),
        ]


def beyond(config, event):
    """Whether an event has a weight row that does not exist."""
    rows = config.weight_rows
    if not config.pairs:
        return event.row >= rows
    return Cat(
        adds & (row >= rows // 2) for row, adds in zip(event.rows, event.adds, strict=True)
    ).any()
