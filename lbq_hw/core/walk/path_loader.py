"""Reads the PATH records of the current layer."""

from amaranth import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.fabric.registers import delayed
from lbq_hw.core.timing import timing
from lbq_hw.core.walk import records
from lbq_hw.core.walk.path_store import LoadPort
from lbq_hw.core.walk.tables import Table
from lbq_hw.isa.record import SLICE

__all__ = ["PathLoader"]


class PathLoader(wiring.Component):
    """Reads the PATH records of a layer, one slice per cycle, and refuses an illegal one.

    Reading slice by slice keeps the table's memory narrow, however wide a record is.

    Timing. A PATH record has Q slices. After ``start`` in cycle c, ``loading`` is 1 for
    ``paths * Q + 1`` cycles, from c + 1 until the last record is complete. Path n of the layer is
    on ``o`` in cycle ``c + (n + 1) * Q + 2``, and the last path stays there until the next
    ``start``. An illegal record ends the load at once, and ``bad`` is 1 in the cycle after it; for
    the last record of a layer this is the second cycle without ``loading``. With external memory a
    register follows the memory: records come a cycle later, and ``loading`` is 1 for one cycle
    more.

    Parameters
    ----------
    config : `CoreConfig`

    Members
    -------
    table : read port of the PATH table's slices, flipped
    start : in
    first, last : in
        Numbers of the layer's first and last record; stable while loading.
    loading : out
    bad, bad_at : out
        Record `bad_at` is illegal, and nothing after it was loaded; stable until the next start.
    o : `LoadPort`
        Each record when it is complete, an illegal one included.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        table = memory.ReadPort.Signature(addr_width=Table.PATHS.bits(config), shape=SLICE)
        at_bits = address_bits(config.paths)
        super().__init__(
            {
                "table": In(table),
                "start": In(1),
                "first": In(at_bits),
                "last": In(at_bits),
                "loading": Out(1),
                "bad": Out(1),
                "bad_at": Out(at_bits),
                "o": Out(LoadPort(config)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        parts, part_bits = isa.PATH.slices(c), Table.PATHS.part_bits(c)
        record, complete = self.o.record.as_value(), self.o.en

        # Each slice is requested, read, and stored in `record`; the last slice completes a record.
        asking, record_valid = Signal(), Signal()
        part, record_part = Signal(range(parts)), Signal(range(parts))
        number, at = Signal.like(self.o.path), Signal.like(self.first)
        number_there = Signal.like(number)
        last_part, illegal = Signal(), Signal()
        behind = timing(c).record_read
        in_flight = [asking]  # the request, until the table answers it
        for cycle in range(behind):
            in_flight.append(Signal(name=f"in_flight_{cycle}"))
            m.d.sync += in_flight[-1].eq(in_flight[-2])
        sent_part = delayed(m, part, behind, name="sent_part")
        sent_number = delayed(m, number, behind, name="sent_number")
        table_data = delayed(m, self.table.data, behind, name="table_data")
        m.d.comb += [
            self.table.en.eq(asking),
            self.table.addr.eq(Cat(part, at) if part_bits else at),
            last_part.eq(record_part == parts - 1),
            illegal.eq(complete & records.illegal(isa.PATH, c, self.o.record)),
            self.loading.eq(Cat(in_flight).any() | record_valid),
        ]
        m.d.sync += [
            record_valid.eq(in_flight[-1]),
            record_part.eq(sent_part),
            number_there.eq(sent_number),
            complete.eq(record_valid & last_part),
            self.o.path.eq(number_there),
        ]
        with m.If(asking):
            m.d.sync += part.eq(part + 1)
            with m.If(part == parts - 1):
                m.d.sync += [part.eq(0), number.eq(number + 1), at.eq(at + 1)]
                m.d.sync += asking.eq(at != self.last)
        with m.If(record_valid):
            for i in range(parts):
                place = record[SLICE * i : SLICE * (i + 1)]
                with m.If(record_part == i):
                    m.d.sync += place.eq(table_data)
        with m.If(illegal):
            m.d.sync += [asking.eq(0), record_valid.eq(0), complete.eq(0)]
            m.d.sync += [self.bad.eq(1), self.bad_at.eq(self.first + self.o.path)]
        with m.If(self.start):
            m.d.sync += [asking.eq(1), record_valid.eq(0), complete.eq(0), self.bad.eq(0)]
            m.d.sync += [part.eq(0), number.eq(0), at.eq(self.first)]
        with m.If(illegal | self.start):
            m.d.sync += [bit.eq(0) for bit in in_flight[1:]]
        return m
