"""Collects the levels of an update into bit planes."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.neurons.updates import Group
from lbq_hw.core.payload import LevelPlanes, LevelWrite, WriteInfo

__all__ = ["CompactCollector", "LevelCollector"]


class LevelCollector(wiring.Component):
    """Shifts the levels of an update into planes, one group per cycle, and offers complete planes.

    Timing. If the group given in cycle c is the last of its update, the planes are offered in cycle
    c + 1.

    Parameters
    ----------
    lanes, units, planes : int
        Channels of a tile and of a group, bits of a level.
    group : `Group`
    write : `WriteInfo`
    ends : int
        Position in the pipeline at which a group's levels are known.

    Members
    -------
    at : array of `Group`
        The group at each position, from 0 to `ends`.
    levels : ``units`` unsigned
        Levels of the group at `ends`.
    write : `WriteInfo`
        Where the planes of the group at position 0 go.
    o : stream of `LevelPlanes`, always ready
        The planes are stable until the next levels arrive.
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
        """Members for the output of planes."""
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
        """Delay the values of an update from position 0 to `ends`. They change at most every
        `groups` cycles, so one register per `groups` positions is enough.
        """
        for index in range(0, len(self.at) - 1, self._groups):
            held = Signal(write.shape(), name=f"write_{index}", reset_less=True)
            with m.If(self.at[index].valid & self.at[index].last):
                m.d.sync += held.eq(write)
            write = held
        return write


class CompactCollector(LevelCollector):
    """As `LevelCollector`, without a copy of the planes, which `CompactWriter` does not need.

    Timing. If the group given in cycle c is the last of its update, the planes are announced in
    cycle c, and plane k is valid only in cycle c + 1 + k.

    Members
    -------
    o : stream of `LevelWrite`, always ready
    planes : array of ``lanes`` bits each
        The planes of the item that was offered.
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
        # Bit k of a level is shifted in k cycles late, so plane k is complete k cycles after
        # plane 0.
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
