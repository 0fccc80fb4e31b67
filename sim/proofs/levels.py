"""Levels on their way into the activation memory: collected into planes, and written."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from amaranth import Cat, Const, Signal, Value

from lbq_hw.config import granule_bits
from lbq_hw.core.neurons.updates import Group
from lbq_hw.core.payload import LayerInfo, WriteInfo
from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_PLANES, _ADDRESS = 3, 3
_WRITER_LANES, _WORD = 16, 32
_LANES, _UNITS, _ENDS = 4, 2, 3


def _written(code: ModuleType, kind: str) -> Contract:
    """Plane k of what came in a cycle is written k + 2 cycles later, in its place; nothing else."""
    c = Contract()
    layout = LayerInfo(
        lanes=_WRITER_LANES,
        planes=_PLANES,
        address_bits=_ADDRESS,
        update_bits=1,
        decay_bits=1,
        shift_bits=1,
    )
    write = WriteInfo(lanes=_WRITER_LANES, word=_WORD, address_bits=_ADDRESS)
    sizes = {"lanes": _WRITER_LANES, "word": _WORD, "plane_bits": _ADDRESS}
    block = c.add(getattr(code, kind)(**sizes, write=write, layer=layout))
    layer, comes, given, out = block.layer, block.i.valid, block.i.payload, block.o.payload
    granule = granule_bits(_WRITER_LANES)
    c.assume(c.before(Value.cast(layer), 1) == Value.cast(layer), after=1)
    c.assume((layer.planes != 0) & (layer.planes <= _PLANES))
    c.assume((layer.granules == 1) | (layer.granules == 2))
    c.assume(~comes | ((given.write.place & (layer.granules - 1)) == 0))
    for cycles in range(1, _PLANES):
        c.assume(~comes | ~c.before(comes, cycles) | (layer.planes <= cycles))
    begun = Signal()  # the first planes determine their place
    c.assume(~comes | given.restart | begun)

    kept, following = Signal(write), Signal(_ADDRESS)
    place: Any = Signal(write)
    c.m.d.comb += place.eq(kept)
    with c.m.If(given.restart):
        c.m.d.comb += place.eq(given.write)
    with c.m.Else():
        c.m.d.comb += place.addr.eq(following)
    with c.m.If(comes):
        c.m.d.sync += [begun.eq(1), kept.eq(place)]
        c.m.d.sync += following.eq(place.addr + layer.planes * layer.stride)
    expected: Any = Const(0, 1)
    for number in range(_PLANES):
        due = c.before(comes, number + 2) & (number < layer.planes)
        expected |= due
        at: Any = write(c.before(Value.cast(place), number + 2))
        if kind == "Writer":
            plane = c.before(given.planes[number], number + 2)
        else:
            plane = c.before(block.planes[number], 1)
        c.must(~due | (out.addr == (at.addr + number * layer.stride)[:_ADDRESS]))
        c.must(~due | (out.first == at.first))
        for index, enable in enumerate(out.enable):
            inside = (index >= at.place) & (index < at.place + layer.granules)
            bits = plane.word_select((index - at.place)[: len(at.place)], granule)
            c.must(~due | (enable == inside))
            c.must(~(due & inside) | (out.data.word_select(index, granule) == bits))
    c.must(block.o.valid == expected)
    c.must(block.busy == (expected | c.before(comes, 1)))
    return c


def _collected(code: ModuleType, kind: str) -> Contract:
    """The levels of all groups of an update, plane by plane, go where the update says."""
    c = Contract()
    write = WriteInfo(lanes=_LANES, word=2 * _LANES, address_bits=_ADDRESS)
    groups = _LANES // _UNITS
    group = Group(groups=groups, timesteps=2, param_bits=1)
    sizes = {"lanes": _LANES, "units": _UNITS, "planes": _PLANES, "ends": _ENDS}
    block = c.add(getattr(code, kind)(**sizes, group=group, write=write))
    now, ended, levels = block.at[0], block.at[_ENDS], Value.cast(block.levels)
    _updates(c, now, groups)
    for position in range(_ENDS):
        here, following = (Value.cast(block.at[position + i]) for i in range(2))
        c.assume(following == c.before(here, 1))

    kept = [Signal.like(levels, name=f"levels_{number}") for number in range(groups)]
    for number, known in enumerate(kept):
        with c.m.If(ended.valid & (ended.group == number)):
            c.m.d.sync += known.eq(levels)
    complete = ended.valid & ended.last & ended.emit
    place = c.before(Value.cast(block.write), _ENDS)
    at_once = kind == "LevelCollector"  # all planes, in the cycle after the last levels
    offered, restart = complete, ended.restart
    if at_once:
        offered, restart, place = (c.before(value, 1) for value in (offered, restart, place))
    c.must(block.o.valid == offered)
    c.must(~offered | (block.o.payload.restart == restart))
    c.must(~offered | (Value.cast(block.o.payload.write) == place))
    for plane in range(_PLANES):
        late = 0 if at_once else plane
        bits = block.o.payload.planes[plane] if at_once else block.planes[plane]
        expected = Cat(
            c.before(known, late).bit_select(unit * _PLANES + plane, 1)
            for known in kept
            for unit in range(_UNITS)
        )
        c.must(~c.before(complete, 1 + late) | (bits == expected))
    return c


def _updates(c: Contract, group: Any, groups: int) -> None:
    """Groups come update by update, with any waits between them."""
    following = Signal.like(group.group)
    before: Any = Signal(group.shape())
    alike = (before.emit == group.emit) & (before.restart == group.restart)
    c.assume(~group.valid | (group.group == following))
    c.assume(~group.valid | (group.last == (group.group == groups - 1)))
    c.assume(~group.valid | (group.group == 0) | alike)
    with c.m.If(group.valid):
        c.m.d.sync += [following.eq(group.group + 1), before.eq(group)]


_WRITER, _COLLECTOR = "lbq_hw.core.memory.writer", "lbq_hw.core.neurons.level_collector"
_WRITES = "each plane is written once, in its cycle, word and granules, and nothing else"
_COLLECTS = "all planes of an update, each level in its place, and their address"

PROOFS = (
    Proof(
        name="writer",
        says=f"the Writer of standard and spread cores: {_WRITES}",
        module=_WRITER,
        contract=lambda code: _written(code, "Writer"),
        bug=Bug(
            old="write.addr.eq(write.addr + layer.stride)",
            new="write.addr.eq(write.addr + (layer.stride & ~last.replicate(len(layer.stride))))",
        ),
        cycles=12,
    ),
    Proof(
        name="compact-writer",
        says=f"the Writer of compact cores: {_WRITES}",
        module=_WRITER,
        contract=lambda code: _written(code, "CompactWriter"),
        bug=Bug(old="chunk.eq(held[index])", new="chunk.eq(held[0])"),
        cycles=12,
        fast=True,
    ),
    Proof(
        name="level-collector",
        says=f"the LevelCollector of standard and spread cores: {_COLLECTS}",
        module=_COLLECTOR,
        contract=lambda code: _collected(code, "LevelCollector"),
        bug=Bug(
            old="range(0, len(self.at) - 1, self._groups)",
            new="range(0, len(self.at) - 1, self._groups + 1)",
        ),
        cycles=12,
        fast=True,
    ),
    Proof(
        name="compact-collector",
        says=f"the LevelCollector of compact cores: {_COLLECTS}",
        module=_COLLECTOR,
        contract=lambda code: _collected(code, "CompactCollector"),
        bug=Bug(old="late.eq(levels), collects", new="late.eq(self.levels), collects"),
        cycles=12,
    ),
)
