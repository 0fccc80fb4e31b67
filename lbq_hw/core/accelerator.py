"""The core: everything behind one memory-mapped port."""

from collections.abc import Mapping, Sequence

from amaranth import Module, Signal, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core import variants
from lbq_hw.core.external.host_memory_port import HostMemoryPort
from lbq_hw.core.external.tape_port import TapePort
from lbq_hw.core.external.tape_runner import TapeRunner
from lbq_hw.core.fabric.hints import small_memory
from lbq_hw.core.fabric.registers import copies, delayed
from lbq_hw.core.fabric.sharing import SPREAD_UNITS
from lbq_hw.core.host.port import PortSignature
from lbq_hw.core.stream.queue import Queue
from lbq_hw.core.timing import timing
from lbq_hw.core.walk.walker import Walker
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region

__all__ = ["Accelerator", "TapeAccelerator", "accelerator"]

_TABLES = {Region[kind.upper()]: kind for kind in isa.TABLES}
_BAKED = (*_TABLES, Region.WEIGHTS, Region.PARAMS)


class Accelerator(wiring.Component):
    """Executes the program of `lbq_hw.isa` that its memories hold.

    The host writes tables, weights, parameters and the input planes through ``port`` (see
    `HostPort`), starts, waits for ``busy`` to fall and reads the logits. An illegal program does
    not hang: it ends with an error code in a register.

    Stages: `Walker` (loops) -> `Scanner` (set bits) -> event FIFO -> `LaneArray` (sums) ->
    `NeuronArray` (levels) -> `Writer` -> `PlaneMemory`. Queues let the stages before the lanes run
    ahead. The stages behind the lanes never stall: the lanes hold their sums until the neuron units
    can take them. Between two layers the walker waits until all levels are written. `variants`
    chooses the class of each stage; `TapeAccelerator` is the core with external memory.

    Parameters
    ----------
    config : `CoreConfig`
    image : mapping of `regions.Region` to entries, or None
        Contents of tables, parameters and weights after configuration: one integer per entry,
        packed as in memory (a weight row with lane 0 lowest). Entries left out are 0.

    Members
    -------
    port : `HostPort` signature
    busy : bit
        A program is running.
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
        super().__init__({"port": In(PortSignature()), "busy": Out(1)} | self._of_memory())

    def _of_memory(self):
        """Members for an external memory."""
        return {}

    @property
    def config(self) -> CoreConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        c, image = self._config, self._image
        tables = {kind: image.get(region, ()) for region, kind in _TABLES.items()}
        m.submodules.host = host = variants.host_port(c)(c)
        m.submodules.walker = walker = Walker(c, **tables)
        layer, step = walker.o_layer_info.shape(), walker.o_step.payload.shape()
        m.submodules.planes = planes = variants.plane_memory(c)
        m.submodules.scanner = scanner = variants.scanner(c)
        m.submodules.events = events = Queue(
            scanner.o_event.payload.shape(), depth=c.fifo_depth, spare=c.spread
        )
        m.submodules.lanes = lanes = variants.lane_array(c, init=image.get(Region.WEIGHTS, ()))
        m.submodules.neurons = neurons = variants.neuron_array(
            c, layer=layer, step=step, init=self._params()
        )
        m.submodules.writer = writer = variants.writer(c, layer=layer, step=step)

        connect(m, wiring.flipped(self.port), host.port)
        connect(m, walker.o_request, scanner.i_request)
        connect(m, walker.o_step, neurons.i_step)
        connect(m, scanner.o_event, events.i)
        connect(m, events.o, lanes.i_event)
        connect(m, scanner.word, planes.word)
        connect(m, scanner.summary, planes.summary)
        connect(m, lanes.o_sum, neurons.i_sum)
        connect(m, host.planes, planes.host)
        writer.connect(m, neurons)
        m.d.comb += [
            lanes.room.eq(neurons.room),
            neurons.layer.eq(walker.o_layer_info),
            writer.layer.eq(walker.o_layer_info),
            self.busy.eq(host.busy),
        ]
        self._write_planes(m, host, writer, planes)
        self._logits(m, platform, host, neurons)
        quiet = Signal()
        m.d.comb += quiet.eq(~(lanes.busy | neurons.busy | writer.busy | events.o.valid))
        self._watch(m, host, walker, lanes)
        self._count(m, host, scanner, lanes)
        self._run(m, host, walker, lanes, neurons, quiet)
        return m

    def _params(self):
        """Words of the parameter memory: the parameters of each of `units` channels."""
        c, names = self._config, isa.parameters(self._config)
        channels = [
            [isa.PARAM.decode(c, entry)[name] for name in names]
            for entry in self._image.get(Region.PARAMS, ())
        ]
        channels += [[0] * len(names)] * (-len(channels) % c.units)
        return [
            [value for channel in channels[i : i + c.units] for value in channel]
            for i in range(0, len(channels), c.units)
        ]

    def _write_planes(self, m, host, writer, planes):
        """Merge the plane writes of host and writer. The host writes only while no program runs, so
        ``busy`` chooses between the two: the host's ``valid`` arrives late in its cycle.
        """
        registers = timing(self._config).plane_write
        valid = writer.o.valid | host.plane_write.valid
        payload = Signal.like(writer.o.payload)
        m.d.comb += payload.eq(writer.o.payload)
        with m.If(~host.busy):
            m.d.comb += payload.eq(host.plane_write.payload)
        m.d.comb += [
            planes.i_write.valid.eq(delayed(m, valid, registers, name="plane_write_valid")),
            planes.i_write.payload.eq(delayed(m, payload, registers, name="plane_write")),
        ]

    def _logits(self, m, platform, host, neurons):
        """Store logits in the order of their arrival, `units` per word."""
        c = self._config
        depth = c.logits // c.units
        m.submodules.logits = store = memory.Memory(
            shape=neurons.o_logits.payload.shape(),
            depth=depth,
            init=[],
            attrs=small_memory(c, platform, depth),
        )
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

    def _watch(self, m, host, walker, lanes):
        """Stop at an event whose weight row does not exist."""
        event, rows = lanes.i_event, self._config.weight_rows
        beyond = event.payload.shape().beyond(event.payload, rows)
        found = event.valid & event.payload.mask.any() & beyond
        stray = delayed(m, found, timing(self._config).stray, name="stray")
        m.d.comb += [host.stray.eq(stray & host.busy), host.layer.eq(walker.o_layer)]

    def _run(self, m, host, walker, lanes, neurons, quiet):
        """Run one layer after the other; the program ends with the last."""
        connect(m, host.records, walker.i_record)
        connect(m, host.weights, lanes.weights)
        connect(m, host.params, neurons.params)
        m.d.comb += [
            walker.i_start.eq(host.start),
            walker.i_resume.eq(walker.layer_done & quiet),
            walker.i_stop.eq(host.stray),
            host.finished.eq(host.busy & walker.o_done & ~walker.o_busy & quiet),
            host.walk_error.eq(walker.o_error),
            host.walk_error_at.eq(walker.o_error_at),
        ]

    def _count(self, m, host, scanner, lanes):
        """Connect the pulses that the host's counters count."""
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


class TapeAccelerator(Accelerator):
    """As `Accelerator`, with its program on a tape in external memory.

    `TapeRunner` reads the tape while the core runs, stores the records, weights and parameters in
    it, and begins each pass of a layer once the pass has all of them. The host writes only the tape
    and the input planes.

    Members
    -------
    memory : `TapePort`
    host_memory : `HostMemoryPort`
        The same memory, for the host.
    """

    def __init__(self, config: CoreConfig, *, image: Mapping[Region, Sequence[int]] | None = None):
        if image:
            raise ValueError(
                "a core with external memory must have its program on a tape, not in an image"
            )
        super().__init__(config)

    def _of_memory(self):
        bits = self._config.external
        return {"memory": Out(TapePort(bits)), "host_memory": Out(HostMemoryPort())}

    def _run(self, m, host, walker, lanes, neurons, quiet):
        """Run the passes; each begins when the tape allows it."""
        m.submodules.tape = tape = TapeRunner(self._config)
        drained = self._drained(m, quiet)
        connect(m, tape.i, wiring.flipped(self.memory.words))
        connect(m, host.host_memory, wiring.flipped(self.host_memory))
        connect(m, tape.records, walker.i_record)
        connect(m, tape.weights, lanes.weights)
        connect(m, tape.params, neurons.params)
        m.d.comb += [
            neurons.i_valids.eq(lanes.o_valids),
            lanes.rooms.eq(neurons.rooms),
            neurons.begin.eq(tape.begin),
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

    def _logits(self, m, platform, host, neurons):
        """As in `Accelerator`, in a memory for each `SPREAD_UNITS` units, with its own address."""
        c, logits, read = self._config, neurons.o_logits, host.logits
        depth = c.logits // c.units
        addr, following, begins = Signal(ceil_log2(depth)), Signal(ceil_log2(depth)), Signal()
        m.d.comb += following.eq(addr + logits.valid)
        with m.If(begins):
            m.d.comb += following.eq(0)
        m.d.sync += [addr.eq(following), begins.eq(host.start)]
        addresses = copies(m, following, len(neurons.logits_valids), name="logits_addr")
        for i, (own_addr, valid) in enumerate(zip(addresses, neurons.logits_valids, strict=True)):
            units = range(i * SPREAD_UNITS, min((i + 1) * SPREAD_UNITS, c.units))
            m.submodules[f"logits_{i}"] = store = memory.Memory(
                shape=data.ArrayLayout(signed(c.membrane_bits), len(units)),
                depth=depth,
                init=[],
                attrs=small_memory(c, platform, depth),
            )
            write, own_read = store.write_port(), store.read_port()
            m.d.comb += [
                write.addr.eq(own_addr),
                write.en.eq(valid),
                own_read.addr.eq(read.addr),
                own_read.en.eq(read.en),
            ]
            for place, unit in enumerate(units):
                m.d.comb += [
                    write.data[place].eq(logits.payload[unit]),
                    read.data[unit].eq(own_read.data[place]),
                ]

    def _drained(self, m, quiet):
        """Whether all blocks behind the walker are idle and have stored their writes. `quiet` does
        not include the second and third cycle of a write, so two registers wait for these. The last
        register splits the long path from all these blocks to the tape runner.
        """
        drained, settled, was_quiet = Signal(), Signal(), Signal()
        m.d.sync += [was_quiet.eq(quiet), settled.eq(quiet & was_quiet)]
        m.d.sync += drained.eq(quiet & settled)
        return drained


def accelerator(config: CoreConfig) -> type[Accelerator]:
    """The class of the core that a config describes."""
    return TapeAccelerator if config.external else Accelerator
