"""Keeps the path states of the steps that wait for their runs."""

from amaranth import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.memory.apart import APART
from lbq_hw.core.walk.places import PathState

__all__ = ["SLOTS", "PathStates"]

SLOTS = 2
"""Steps whose states are kept."""


class PathStates(wiring.Component):
    """Slots for the states of all paths of two steps: one is read while the other is stored.

    The only path of a layer, if `layer_paths` is 1, needs no memory: the state that is read is in a
    register, and that of the next step stays where it is made.

    Timing. A state that is asked for in cycle c is on ``o`` in cycle c + 1, until the next is. The
    only path's is there two cycles after its ``open``, or in the cycle after the ``release`` of the
    step before if that is later, until its own ``release``.

    Members
    -------
    store, store_at, state, only, free, open : as in `Segments`
    read, slot, path : in
        Ask for a state. Steps use the slots in turn.
    release : in
        The step that was opened first needs its states no more.
    o : out, `PathState`
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        path_bits = address_bits(config.layer_paths)
        super().__init__(
            {
                "store": In(1),
                "store_at": In(path_bits),
                "state": In(PathState(config)),
                "only": In(PathState(config)),
                "free": Out(1),
                "open": In(1),
                "read": In(1),
                "slot": In(1),
                "path": In(path_bits),
                "release": In(1),
                "o": Out(PathState(config)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        if self._config.layer_paths > 1:
            self._keep_all(m)
        else:
            self._keep_only(m)
        return m

    def _keep_all(self, m):
        m.submodules.states = states = memory.Memory(
            shape=self.o.shape(), depth=SLOTS * self._config.layer_paths, init=[], attrs=APART
        )
        write, read = states.write_port(), states.read_port()
        slot = Signal()
        kept = Signal(range(SLOTS + 1))  # slots whose states are still to be read
        m.d.comb += [
            self.free.eq(kept < SLOTS),
            write.en.eq(self.store),
            write.addr.eq(Cat(slot, self.store_at)),
            write.data.eq(self.state),
            read.en.eq(self.read),
            read.addr.eq(Cat(self.slot, self.path)),
            self.o.eq(read.data),
        ]
        m.d.sync += [kept.eq(kept + self.open - self.release), slot.eq(slot ^ self.open)]

    def _keep_only(self, m):
        full = Signal()
        pending = Signal()  # the next step is open, its state still in `only`
        load = pending & (~full | self.release)
        m.d.comb += self.free.eq(~(full & pending))
        m.d.sync += [
            full.eq(load | (full & ~self.release)),
            pending.eq(self.open | (pending & ~load)),
        ]
        with m.If(load):
            m.d.sync += self.o.eq(self.only)
