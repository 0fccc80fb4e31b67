"""Collects the levels of an update into bit planes."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.neurons.updates import Group
from lbq_hw.core.payload import LevelPlanes, LevelWrite, WriteInfo

__all__ = ["LevelCollector"]


class LevelCollector(wiring.Component):
    """Shifts the levels of an update into planes, a group per cycle, and offers them when complete.

    Timing. Levels that are given in cycle c are offered in cycle c + 1, if they are the last of
    their update. If not `fast`, they are offered in cycle c, and plane k is there in cycle
    c + 1 + k, for one cycle: whoever writes one plane per cycle needs no copy of them.

    Parameters
    ----------
    lanes, units, planes : int
        Channels of a tile and of a group, bits of a level.
    group : `Group`
    write : `WriteInfo`
    ends : int
        Position at which a group has its levels.
    fast : bool

    Members
    -------
    at : array of `Group`
        The group that is at each position, from 0 to `ends`.
    levels : ``units`` unsigned
        Of the group at `ends`.
    write : `WriteInfo`
        Where the planes go of the group at 0.
    o : stream of `LevelPlanes`, always ready; of `LevelWrite`, if not `fast`
        Planes in it stay until the next levels come.
    planes : array of ``lanes`` bits each, if not `fast`
        The planes of what was offered.
    """

    def __init__(
        self,
        *,
        lanes: int,
        units: int,
        planes: int,
        group: Group,
        write: WriteInfo,
        ends: int,
        fast: bool = True,
    ):
        self._groups = lanes // units
        self._fast = fast
        levels = LevelPlanes(lanes=lanes, planes=planes, write=write)
        offered = levels if fast else LevelWrite(write=write)
        super().__init__(
            {
                "at": In(data.ArrayLayout(group, ends + 1)),
                "levels": In(data.ArrayLayout(planes, units)),
                "write": In(write),
                "o": Out(stream.Signature(offered, always_ready=True)),
            }
            | ({} if fast else {"planes": Out(levels["planes"].shape)})
        )

    def elaborate(self, _platform):
        m = Module()
        collect = Signal()
        if self._fast:
            self._offer(m, collect)
        else:
            self._offer_early(m, collect)
        return m

    def _offer(self, m, collect):
        """Planes that all are complete at once."""
        out, ended = Signal(self.o.payload.shape(), reset_less=True), self.at[-1]
        m.d.comb += self.o.payload.eq(out)
        m.d.comb += collect.eq(ended.valid & ended.emit)
        write = self._hold(m, self.write)
        m.d.sync += self.o.valid.eq(collect & ended.last)
        with m.If(collect):
            for k, plane in enumerate(out.planes):
                bits = Cat(level[k] for level in self.levels)
                m.d.sync += plane.eq(Cat(plane, bits)[len(bits) :])
            with m.If(ended.last):
                m.d.sync += [out.restart.eq(ended.restart), out.write.eq(write)]

    def _offer_early(self, m, collect):
        """Plane k comes k cycles late, and so it is complete k cycles after plane 0."""
        ended, out = self.at[-1], self.o.payload
        given = Signal(out.shape())
        m.d.comb += [
            collect.eq(ended.valid & ended.emit),
            self.o.valid.eq(collect & ended.last),
            given.restart.eq(self.at[0].restart),
            given.write.eq(self.write),
            out.eq(self._hold(m, given)),
        ]
        levels = self.levels
        for k, plane in enumerate(self.planes):
            if k:
                late = Signal.like(levels, name=f"late_{k}", reset_less=True)
                collects = Signal(name=f"collect_{k}")
                m.d.sync += [late.eq(levels), collects.eq(collect)]
                levels, collect = late, collects
            bits = Cat(level[k] for level in levels)
            register = Signal(plane.shape(), name=f"plane_{k}", reset_less=True)
            m.d.comb += plane.eq(register)
            with m.If(collect):
                m.d.sync += register.eq(Cat(register, bits)[len(bits) :])

    def _hold(self, m, write):
        """What is known of an update at position 0, at `ends`. Updates are at least as many cycles
        apart as one has groups. So what belongs to an update needs a register only every so many
        positions.
        """
        for index in range(0, len(self.at) - 1, self._groups):
            held = Signal(write.shape(), name=f"write_{index}", reset_less=True)
            with m.If(self.at[index].valid & self.at[index].last):
                m.d.sync += held.eq(write)
            write = held
        return write
