"""The PATH records of the layer that runs, out of their table and ready to be read whole."""

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.memory.apart import APART
from lbq_hw.core.walk import records
from lbq_hw.core.walk.tables import Table
from lbq_hw.isa.record import SLICE

__all__ = ["MOVE_FIELDS", "SCAN_FIELDS", "Paths"]

SCAN_FIELDS = (
    "identity",
    "stacked",
    "row_low",
    "row_high",
    "column_low",
    "column_high",
    "increment",
    "lanes",
    "run_first",
    "run_last",
)
"""The fields that say what a run means."""
MOVE_FIELDS = tuple(field.name for field in isa.PATH.fields if field.name not in SCAN_FIELDS)
"""The others, which say how a window moves."""


class Paths(wiring.Component):
    """Copies the PATH records of a layer into memories of their fields, a slice a cycle.

    So the table is narrow, however wide a record is, and a core whose layers have one path holds
    that one in registers.

    Timing. With ``start`` in cycle c, ``loading`` is 1 from c + 1 until all is stored: for ``paths
    * slices + 2`` cycles. An illegal record ends it at once.

    Parameters
    ----------
    config : `CoreConfig`

    Members
    -------
    table : read port of the PATH table's slices, seen from the other side
    start : in
    first, last : in
        Records of the layer; stable while loading.
    loading : out
    bad, bad_at : out
        The record `bad_at` is illegal, and nothing after it was loaded; until the next start.
    moves, scans : read ports of `MOVE_FIELDS` and `SCAN_FIELDS`, by the path's number in the layer
        Not while loading.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        table = memory.ReadPort.Signature(addr_width=Table.PATHS.bits(config), shape=SLICE)
        number_bits, at_bits = address_bits(config.layer_paths), address_bits(config.paths)

        def port(names):
            shape = records.layout(isa.PATH, config, names)
            return Out(memory.ReadPort.Signature(addr_width=number_bits, shape=shape))

        super().__init__(
            {
                "table": In(table),
                "start": In(1),
                "first": In(at_bits),
                "last": In(at_bits),
                "loading": Out(1),
                "bad": Out(1),
                "bad_at": Out(at_bits),
                "moves": port(MOVE_FIELDS),
                "scans": port(SCAN_FIELDS),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        parts, part_bits = isa.PATH.slices(c), Table.PATHS.part_bits(c)
        whole = records.layout(isa.PATH, c)
        record = Signal(whole.size)
        path = data.View(whole, record)

        # A slice is asked for, then there, then in its place; with the last of them the record is.
        asking, there, complete = Signal(), Signal(), Signal()
        part, part_there = Signal(range(parts)), Signal(range(parts))
        number, at = Signal.like(self.moves.addr), Signal.like(self.first)
        number_there, number_complete = Signal.like(number), Signal.like(number)
        last_part, illegal = Signal(), Signal()
        m.d.comb += [
            self.table.en.eq(asking),
            self.table.addr.eq(Cat(part, at) if part_bits else at),
            last_part.eq(part_there == parts - 1),
            illegal.eq(complete & records.illegal(isa.PATH, c, path)),
            self.loading.eq(asking | there | complete),
        ]
        m.d.sync += [
            there.eq(asking),
            part_there.eq(part),
            number_there.eq(number),
            complete.eq(there & last_part),
            number_complete.eq(number_there),
        ]
        with m.If(asking):
            m.d.sync += part.eq(part + 1)
            with m.If(part == parts - 1):
                m.d.sync += [part.eq(0), number.eq(number + 1), at.eq(at + 1)]
                m.d.sync += asking.eq(at != self.last)
        with m.If(there):
            for i in range(parts):
                place = record[SLICE * i : SLICE * (i + 1)]
                with m.If(part_there == i):
                    m.d.sync += place.eq(self.table.data)
        with m.If(illegal):
            m.d.sync += [asking.eq(0), there.eq(0), complete.eq(0)]
            m.d.sync += [self.bad.eq(1), self.bad_at.eq(self.first + number_complete)]
        with m.If(self.start):
            m.d.sync += [asking.eq(1), there.eq(0), complete.eq(0), self.bad.eq(0)]
            m.d.sync += [part.eq(0), number.eq(0), at.eq(self.first)]

        for name, port, fields in (
            ("moves", self.moves, MOVE_FIELDS),
            ("scans", self.scans, SCAN_FIELDS),
        ):
            chosen = Cat(Value.cast(path[field]) for field in fields)
            if c.layer_paths == 1:
                m.d.comb += Value.cast(port.data).eq(chosen)
                continue
            m.submodules[name] = store = memory.Memory(
                shape=port.data.shape(), depth=c.layer_paths, init=[], attrs=APART
            )
            write, read = store.write_port(), store.read_port()
            m.d.comb += [
                write.en.eq(complete),
                write.addr.eq(number_complete),
                Value.cast(write.data).eq(chosen),
                read.en.eq(port.en),
                read.addr.eq(port.addr),
                port.data.eq(read.data),
            ]
        return m
