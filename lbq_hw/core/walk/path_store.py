"""The paths of the layer that runs: their fields, and where each of them looks.

A core whose layers have one path holds it in registers; others hold theirs in memories. The choice
is made by `path_store`; all other blocks see the same ports.
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
"""Steps whose path states are kept: one is read while the other is made."""


class LoadPort(wiring.Signature):
    """A PATH record that was read: it stays, with its number in the layer, until the next comes.

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
    """Fields of view to be moved, each from where it is to where it is next.

    Members
    -------
    en, path
        Name a path by its number in the layer, in cycle c.
    moves, old
        Its `MOVE_FIELDS`, and its `FieldOfView`, in cycle c + 1.
    done, done_path, new
        The new `FieldOfView` of a path.
    """

    def __init__(self, config: CoreConfig):
        path_bits = address_bits(config.layer_paths)
        super().__init__(
            {
                "en": Out(1),
                "path": Out(path_bits),
                "moves": In(records.layout(isa.PATH, config, MOVE_FIELDS)),
                "old": In(FieldOfView(config)),
                "done": Out(1),
                "done_path": Out(path_bits),
                "new": Out(FieldOfView(config)),
            }
        )


class FetchPort(wiring.Signature):
    """Paths as the segments of a step ask for them.

    Members
    -------
    en, slot, path
        Ask for a path, in cycle c. Steps use the slots in turn.
    fields, state
        Its `SCAN_FIELDS`, and its `PathState` in that step, in cycle c + 1; until the next is asked
        for or the step is released.
    release
        The step that was opened first needs its states no more.
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
    """Whether a slot counts as free in the cycle of its release already."""
    return Const(0) if timing(config).slot_free else release


def _members(config: CoreConfig) -> dict[str, wiring.Member]:
    """The ports that both stores have."""
    return {
        "load": In(LoadPort(config)),
        "move": In(MovePort(config)),
        "tile": In(address_bits(config.param_tiles)),
        "free": Out(1),
        "open": In(1),
        "fetch": In(FetchPort(config)),
        "only": Out(records.layout(isa.PATH, config, SCAN_FIELDS)),
    }


class OnePath(wiring.Component):
    """Holds the only path of a layer: its fields where they were loaded, its states in registers.

    So what is read of it is there before it is asked for, and stays.

    Timing. Fields are there with their ``load``. A field of view that is ``done`` in cycle c is
    ``old`` from cycle c + 1 on. A step's state is there two cycles after its ``open``, or in the
    cycle after the ``release`` of the step before if that is later, until its own ``release``.

    Members
    -------
    load : `LoadPort`, seen from the other side
        Not while a step is open.
    move : `MovePort`, seen from the other side
        No path is ``done`` while not ``free``, nor in the two cycles after an ``open``.
    tile : in
        Number of the tile that a field of view moves to, in the cycle of ``done``.
    free : out
        There is a slot for another step, if only from the next cycle on. Later by ``slot_free`` of
        `Timing`.
    open : in
        The field of view is where the next step wants it: with ``done``, or later.
    fetch : `FetchPort`, seen from the other side
        Paths of a step can be asked for from the cycle after its ``open`` on, but not before the
        cycle of the ``release`` of the step before. Its own ``release`` comes two cycles after its
        ``open``, or later.
    only : out
        The `SCAN_FIELDS` of the layer's only path.
    """

    holds = True
    """Whether ``moves`` and ``old`` stay until the field of view has moved."""

    def __init__(self, config: CoreConfig):
        self._config = config
        super().__init__(_members(config))

    def elaborate(self, platform):
        m = Module()
        record, move, fetch = self.load.record, self.move, self.fetch
        tile = Signal.like(self.tile)
        m.d.comb += [move.moves[name].eq(record[name]) for name in MOVE_FIELDS]
        m.d.comb += [self.only[name].eq(record[name]) for name in SCAN_FIELDS]
        m.d.comb += fetch.fields.eq(self.only)
        with m.If(move.done):
            m.d.sync += [move.old.eq(move.new), tile.eq(self.tile)]

        full = Signal()
        pending = Signal()  # the next step is open, its state still that of the field of view
        take = pending & (~full | fetch.release)
        m.d.comb += self.free.eq(~(full & pending) | _freed(self._config, fetch.release))
        m.d.sync += [
            full.eq(take | (full & ~fetch.release)),
            pending.eq(self.open | (pending & ~take)),
        ]
        with m.If(take):
            m.d.sync += fetch.state.number.eq(tile)
            m.d.sync += [fetch.state[name].eq(move.old[name]) for name in SEEN]
        must(m, platform, ~(self.load.en & (full | pending)), "a path is loaded in an open step")
        must(m, platform, self.free | ~move.done, "a field of view moves without a slot")
        return m


class ManyPaths(wiring.Component):
    """Holds the paths of a layer in memories: fields, fields of view, and states of two steps.

    Timing. What is read is there in the cycle after it is asked for, and stays until the next read.
    What is loaded, or ``done``, in cycle c can be asked for from cycle c + 1 on.

    Members
    -------
    load, move, tile, free, open, fetch : as in `OnePath`
        But a path may be ``done`` in any cycle, if the step that it belongs to has a slot: from the
        first with ``free`` to that of ``open``.
    only : out
        Without a meaning.
    """

    holds = False
    """Whether ``moves`` and ``old`` stay until the field of view has moved."""

    def __init__(self, config: CoreConfig):
        self._config = config
        super().__init__(_members(config))

    def elaborate(self, platform):
        m = Module()
        load, move, fetch = self.load, self.move, self.fetch
        for name, shown, ask in (
            ("moves", move.moves, move),
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
        kept = Signal(range(SLOTS + 1))  # slots whose states are still to be read
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
    """The store that a core needs: for the only path of a layer, or for many."""
    return ManyPaths if paths_ride(config) else OnePath
