"""Storage for the paths of the current layer: their record fields and their fields of view.

A core whose layers have a single path keeps it in registers; other cores keep paths in memories.
`path_store` chooses, and both forms have the same ports.
"""

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.hints import APART, IN_BLOCK, small_memory
from lbq_hw.core.timing import timing
from lbq_hw.core.walk import records
from lbq_hw.core.walk.places import (
    MOVE_FIELDS,
    SCAN_FIELDS,
    SEEN,
    FieldOfView,
    PathState,
    paths_ride,
)

__all__ = ["SLOTS", "FetchPort", "LoadPort", "ManyPaths", "MovePort", "OnePath", "path_store"]

SLOTS = 2
"""Steps whose path states are stored: the state of one step is read while the next is computed."""


class LoadPort(wiring.Signature):
    """A PATH record, with its number in the layer; stable until the next record.

    Members
    -------
    en : bit
        One cycle per record.
    path : unsigned
    record : all fields of a PATH record
    """

    def __init__(self, config: CoreConfig):
        super().__init__(
            {
                "en": Out(1),
                "path": Out(address_bits(config.layer_paths)),
                "record": Out(records.layout(isa.PATH, config)),
            }
        )


class MovePort(wiring.Signature):
    """Reads the field of view of a path, and writes the field of view of its next position.

    Members
    -------
    en, path
        Select a path by its number in the layer, in cycle c.
    move_fields, old
        The path's `MOVE_FIELDS` and its current `FieldOfView`, in cycle c + 1.
    done, done_path, new
        The next `FieldOfView` of path ``done_path``.
    """

    def __init__(self, config: CoreConfig):
        path_bits = address_bits(config.layer_paths)
        super().__init__(
            {
                "en": Out(1),
                "path": Out(path_bits),
                "move_fields": In(records.layout(isa.PATH, config, MOVE_FIELDS)),
                "old": In(FieldOfView(config)),
                "done": Out(1),
                "done_path": Out(path_bits),
                "new": Out(FieldOfView(config)),
            }
        )


class FetchPort(wiring.Signature):
    """Reads a path for the segments of a step.

    Members
    -------
    en, slot, path
        Read a path, in cycle c. Steps use the slots in turn.
    fields, state
        The path's `SCAN_FIELDS`, and its `PathState` in that step. Valid from cycle c + 1 until the
        next read or the step's release.
    release
        The oldest open step no longer needs its path states.
    """

    def __init__(self, config: CoreConfig):
        super().__init__(
            {
                "en": Out(1),
                "slot": Out(1),
                "path": Out(address_bits(config.layer_paths)),
                "fields": In(records.layout(isa.PATH, config, SCAN_FIELDS)),
                "state": In(PathState(config)),
                "release": Out(1),
            }
        )


def _freed(config: CoreConfig, release: Value) -> Value:
    """Whether a slot counts as free already in the cycle of its release."""
    return Const(0) if timing(config).slot_free else release


def _members(config: CoreConfig) -> dict[str, wiring.Member]:
    """Members common to both stores."""
    return {
        "load": In(LoadPort(config)),
        "move": In(MovePort(config)),
        "tile": In(address_bits(config.param_tiles)),
        "free": Out(1),
        "open": In(1),
        "fetch": In(FetchPort(config)),
        "scan_fields": Out(records.layout(isa.PATH, config, SCAN_FIELDS)),
    }


class OnePath(wiring.Component):
    """Holds the only path of a layer: its fields in the loader, its states in registers.

    Reads have no latency: the outputs do not depend on ``en``.

    Timing. Fields are valid with their ``load``. A field of view that is ``done`` in cycle c is
    ``old`` from cycle c + 1 on. A step's state is valid from two cycles after its ``open``, or from
    the cycle after the previous step's ``release`` if that is later, until its own ``release``.

    Members
    -------
    load : `LoadPort`, flipped
        Not while a step is open.
    move : `MovePort`, flipped
        ``done`` must be 0 while ``free`` is 0, and in the two cycles after an ``open``.
    tile : in
        Number of the tile that a field of view moves to, in the cycle of ``done``.
    free : out
        There is a slot for another step, in this cycle or the next; delayed by ``slot_free`` of
        `Timing`.
    open : in
        A step begins with the field of view as it is now: in the cycle of ``done``, or later.
    fetch : `FetchPort`, flipped
        Paths of a step can be read from the cycle after its ``open`` on, but not before the cycle
        of the previous step's ``release``. The step's own ``release`` comes two cycles after its
        ``open``, or later.
    scan_fields : out
        The `SCAN_FIELDS` of the layer's only path.
    """

    holds = True
    """Whether ``move_fields`` and ``old`` stay until the field of view has moved."""

    def __init__(self, config: CoreConfig):
        self._config = config
        super().__init__(_members(config))

    def elaborate(self, platform):
        m = Module()
        record, move, fetch = self.load.record, self.move, self.fetch
        tile = Signal.like(self.tile)
        m.d.comb += [move.move_fields[name].eq(record[name]) for name in MOVE_FIELDS]
        m.d.comb += [self.scan_fields[name].eq(record[name]) for name in SCAN_FIELDS]
        m.d.comb += fetch.fields.eq(self.scan_fields)
        with m.If(move.done):
            m.d.sync += [move.old.eq(move.new), tile.eq(self.tile)]

        full = Signal()
        pending = Signal()  # the next step is open; its state is still the field of view itself
        take = pending & (~full | fetch.release)
        m.d.comb += self.free.eq(~(full & pending) | _freed(self._config, fetch.release))
        m.d.sync += [
            full.eq(take | (full & ~fetch.release)),
            pending.eq(self.open | (pending & ~take)),
        ]
        with m.If(take):
            m.d.sync += fetch.state.number.eq(tile)
            m.d.sync += [fetch.state[name].eq(move.old[name]) for name in SEEN]
        must(m, platform, ~(self.load.en & (full | pending)), "a path is loaded during a step")
        must(m, platform, self.free | ~move.done, "a field of view moves while no slot is free")
        return m


class ManyPaths(wiring.Component):
    """Holds the paths of a layer in memories: fields, fields of view, and states of two steps.

    Timing. Read data are valid in the cycle after the read, until the next read. A record loaded,
    or a field of view ``done``, in cycle c can be read from cycle c + 1 on.

    Members
    -------
    load, move, tile, free, open, fetch : as in `OnePath`
        But ``done`` may come in any cycle in which its step has a slot: from the first cycle with
        ``free`` to the cycle of ``open``.
    scan_fields : out
        Undefined.
    """

    holds = False
    """Whether ``move_fields`` and ``old`` stay until the field of view has moved."""

    def __init__(self, config: CoreConfig):
        self._config = config
        super().__init__(_members(config))

    def elaborate(self, platform):
        m = Module()
        load, move, fetch = self.load, self.move, self.fetch
        for name, shown, ask in (
            ("move_fields", move.move_fields, move),
            ("scans", fetch.fields, fetch),
        ):
            write, read = self._memory(m, name, shown.shape())
            m.d.comb += [write.en.eq(load.en), write.addr.eq(load.path)]
            m.d.comb += [write.data[field].eq(load.record[field]) for field, _ in shown.shape()]
            m.d.comb += [read.en.eq(ask.en), read.addr.eq(ask.path), shown.eq(read.data)]

        write, read = self._memory(m, "current", move.old.shape())
        m.d.comb += [
            write.en.eq(move.done),
            write.addr.eq(move.done_path),
            write.data.eq(move.new),
            read.en.eq(move.en),
            read.addr.eq(move.path),
            move.old.eq(read.data),
        ]

        depth = SLOTS * self._config.layer_paths
        attrs = small_memory(self._config, platform, depth, IN_BLOCK)
        write, read = self._memory(m, "states", fetch.state.shape(), slots=SLOTS, attrs=attrs)
        slot = Signal()
        kept = Signal(range(SLOTS + 1))  # slots that hold the states of an open step
        m.d.comb += [
            self.free.eq((kept < SLOTS) | _freed(self._config, fetch.release)),
            write.en.eq(move.done),
            write.addr.eq(Cat(slot, move.done_path)),
            read.en.eq(fetch.en),
            read.addr.eq(Cat(fetch.slot, fetch.path)),
            fetch.state.eq(read.data),
            write.data.number.eq(self.tile),
        ]
        m.d.comb += [write.data[name].eq(move.new[name]) for name in SEEN]
        m.d.sync += [kept.eq(kept + self.open - fetch.release), slot.eq(slot ^ self.open)]
        return m

    def _memory(self, m, name, shape, *, slots=1, attrs=APART):
        """Write and read port of a memory with an entry per path and slot."""
        store = memory.Memory(
            shape=shape,
            depth=slots * self._config.layer_paths,
            init=[],
            attrs=attrs,
        )
        m.submodules[name] = store
        return store.write_port(), store.read_port()


def path_store(config: CoreConfig) -> type[OnePath] | type[ManyPaths]:
    """The store for a core: for layers of a single path, or of several."""
    return ManyPaths if paths_ride(config) else OnePath
