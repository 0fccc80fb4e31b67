"""Collects the levels of an update into bit planes."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.neurons.updates import Group
from lbq_hw.core.payload import LevelPlanes, LevelWrite, WriteInfo

__all__ = ["CompactCollector", "LevelCollector"]


class LevelCollector(wiring.Component):
    """Shifts the levels of an update into planes, a group per cycle, and offers them when complete.

    Timing. Levels that are given in cycle c are offered in cycle c + 1, if they are the last of
    their update.

    Parameters
    ----------
    lanes, units, planes : int
        Channels of a tile and of a group, bits of a level.
    group : `Group`
    write : `WriteInfo`
    ends : int
        Position at which a group has its levels.

    Members
    -------
    at : array of `Group`
        The group that is at each position, from 0 to `ends`.
    levels : ``units`` unsigned
        Of the group at `ends`.
    write : `WriteInfo`
        Where the planes go of the group at 0.
    o : stream of `LevelPlanes`, always ready
        Planes in it stay until the next levels come.
    """

    def __init__(
        self, *, lanes: int, units: int, planes: int, group: Group, write: WriteInfo, ends: int
    ):
        self._groups = lanes // units
        super().__init__(
            {
                "at": In(data.ArrayLayout(group, ends + 1)),
                "levels": In(data.ArrayLayout(planes, units)),
                "write": In(write),
            }
            | self._offered(LevelPlanes(lanes=lanes, planes=planes, write=write))
        )

    def _offered(self, levels: LevelPlanes):
        """The members that show the planes."""
        return {"o": Out(stream.Signature(levels, always_ready=True))}

    def elaborate(self, _platform):
        m = Module()
        out, ended = Signal(self.o.payload.shape(), reset_less=True), self.at[-1]
        collect, write = Signal(), self._hold(m, self.write)
        m.d.comb += [self.o.payload.eq(out), collect.eq(ended.valid & ended.emit)]
        m.d.sync += self.o.valid.eq(collect & ended.last)
        with m.If(collect):
            for k, plane in enumerate(out.planes):
                bits = Cat(level[k] for level in self.levels)
                m.d.sync += plane.eq(Cat(plane, bits)[len(bits) :])
            with m.If(ended.last):
                m.d.sync += [out.restart.eq(ended.restart), out.write.eq(write)]
        return m

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


class CompactCollector(LevelCollector):
    """As `LevelCollector`, without a copy of the planes: whoever writes one per cycle needs none.

    Timing. Levels that are given in cycle c are offered in cycle c, if they are the last of their
    update, and plane k is there in cycle c + 1 + k, for one cycle.

    Members
    -------
    o : stream of `LevelWrite`, always ready
    planes : array of ``lanes`` bits each
        The planes of what was offered.
    """

    def _offered(self, levels: LevelPlanes):
        write = LevelWrite(write=levels["write"].shape)
        return {
            "o": Out(stream.Signature(write, always_ready=True)),
            "planes": Out(levels["planes"].shape),
        }

    def elaborate(self, _platform):
        m = Module()
        ended, out = self.at[-1], self.o.payload
        given, collect = Signal(out.shape()), Signal()
        m.d.comb += [
            collect.eq(ended.valid & ended.emit),
            self.o.valid.eq(collect & ended.last),
            given.restart.eq(self.at[0].restart),
            given.write.eq(self.write),
            out.eq(self._hold(m, given)),
        ]
        # Plane k comes k cycles late, and so it is complete k cycles after plane 0.
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
        return m
