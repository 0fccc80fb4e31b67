"""Collects the levels of an update into bit planes."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.neurons.updates import Group
from lbq_hw.core.payload import LevelPlanes, WriteInfo

__all__ = ["LevelCollector"]


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
        The planes stay until the next levels come.
    """

    def __init__(
        self, *, lanes: int, units: int, planes: int, group: Group, write: WriteInfo, ends: int
    ):
        self._groups = lanes // units
        levels = LevelPlanes(lanes=lanes, planes=planes, write=write)
        super().__init__(
            {
                "at": In(data.ArrayLayout(group, ends + 1)),
                "levels": In(data.ArrayLayout(planes, units)),
                "write": In(write),
                "o": Out(stream.Signature(levels, always_ready=True)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        out, ended = Signal(self.o.payload.shape(), reset_less=True), self.at[-1]
        m.d.comb += self.o.payload.eq(out)
        collect = Signal()
        m.d.comb += collect.eq(ended.valid & ended.emit)
        # Updates are at least as many cycles apart as one has groups. So what belongs to an update
        # needs a register only every so many positions.
        write = self.write
        for index in range(0, len(self.at) - 1, self._groups):
            held = Signal(write.shape(), name=f"write_{index}", reset_less=True)
            with m.If(self.at[index].valid & self.at[index].last):
                m.d.sync += held.eq(write)
            write = held

        m.d.sync += self.o.valid.eq(collect & ended.last)
        with m.If(collect):
            for k, plane in enumerate(out.planes):
                bits = Cat(level[k] for level in self.levels)
                m.d.sync += plane.eq(Cat(plane, bits)[len(bits) :])
            with m.If(ended.last):
                m.d.sync += [out.restart.eq(ended.restart), out.write.eq(write)]
        return m
