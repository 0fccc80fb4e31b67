"""The weight memory of a core whose weights fill the chip."""

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.fabric.registers import copies
from lbq_hw.core.fabric.sharing import SPREAD_LANES
from lbq_hw.core.memory.spread import banks
from lbq_hw.core.sizes import check_size

__all__ = ["FarRows", "RowSlice", "lanes_a_slice", "row_banks"]

_SLICE_BITS = 1 << 19
_LONGEST_BANK = 1 << 14  # words that the deepest block RAM has


def lanes_a_slice(rows: int, weight_bits: int) -> int:
    """Lanes per slice, so that a slice's weights lie in neighbouring block RAMs: a power of two."""
    lanes = SPREAD_LANES
    while lanes > 1 and lanes * weight_bits * rows > _SLICE_BITS:
        lanes //= 2
    return lanes


def row_banks(rows: int) -> list[tuple[int, int]]:
    """First row and size of each bank: none is longer than a block RAM."""
    return banks(rows, most=_LONGEST_BANK)


class FarRows(wiring.Component):
    """Memory of weight rows, divided into slices of some lanes, with input and output registers.

    A row is read whole and written lane by lane, but never both in one cycle. Each slice has its
    own copy of the input registers, because a single register that drives all block RAMs would
    drive wires across the whole chip. Each bank of rows has its own output register.

    Timing. The read pipeline advances only in cycles with ``advance``, and holds in all others. Of
    four such cycles, the address is given in the first, the memory is read in the second, and the
    output registers load in the third. The data are valid from the cycle after the third until the
    fourth. A write in cycle c is stored in cycle c + 1, and seen by reads given from then on; no
    earlier read may be in flight.

    Parameters
    ----------
    rows : int
        Number of rows.
    lanes, weight_bits : int
        Weights of a row, and bits of each.
    slices : int
        Number of slices; divides the lanes into equal parts.
    init : iterable of int
        Rows after configuration, lane 0 lowest; rows left out are 0.

    Members
    -------
    write : write port of a row, one enable per lane
    read : read port of a row
    advance : in, copies of one bit, one for each slice
    """

    def __init__(self, *, rows: int, lanes: int, weight_bits: int, slices: int, init=()):
        check_size("rows", rows)
        check_size("lanes", lanes)
        check_size("weight_bits", weight_bits)
        check_size("slices", slices)
        if lanes % slices:
            raise ValueError(f"slices must divide the {lanes} lanes, not be {slices!r}")
        self._rows = rows
        self._weight_bits = weight_bits
        self._init = list(init)
        super().__init__(_row_ports(rows, lanes, weight_bits) | {"advance": In(slices)})

    def elaborate(self, _platform):
        m = Module()
        write, read, count = self.write, self.read, len(self.advance)
        lanes, width = len(write.en) // count, len(read.data) // count
        for i, advance in enumerate(self.advance):
            bits = slice(i * width, (i + 1) * width)
            m.submodules[f"slice_{i}"] = part = RowSlice(
                rows=self._rows,
                lanes=lanes,
                weight_bits=self._weight_bits,
                init=[row >> bits.start & (1 << width) - 1 for row in self._init],
            )
            m.d.comb += [
                part.write.addr.eq(write.addr),
                part.write.data.eq(write.data[bits]),
                part.write.en.eq(write.en[i * lanes : (i + 1) * lanes]),
                part.read.addr.eq(read.addr),
                part.read.en.eq(read.en),
                part.advance.eq(advance),
                read.data[bits].eq(part.read.data),
            ]
        return m


class RowSlice(wiring.Component):
    """Some lanes of all rows. A component of its own, so that tools read the initial contents slice
    by slice.

    Timing, parameters and members as in `FarRows`, for one slice.
    """

    def __init__(self, *, rows: int, lanes: int, weight_bits: int, init=()):
        self._rows = rows
        self._weight_bits = weight_bits
        self._init = list(init)
        super().__init__(_row_ports(rows, lanes, weight_bits) | {"advance": In(1)})

    def elaborate(self, platform):
        m = Module()
        write, read, advance = self.write, self.read, self.advance
        [write_addr] = copies(m, write.addr, 1, name="write_addr")
        [write_data] = copies(m, write.data, 1, name="write_data")
        asked, addr, bank_data = Signal(), Signal.like(read.addr), []
        with m.If(advance):  # each slice has its own copy, so these registers are not merged
            m.d.sync += [asked.eq(read.en), addr.eq(read.addr)]
        for first, depth in row_banks(self._rows):
            m.submodules[f"bank_{first}"] = bank = memory.Memory(
                shape=len(write_data),
                depth=depth,
                init=self._init[first : first + depth],
                attrs=APART,
            )
            put, get = bank.write_port(granularity=self._weight_bits), bank.read_port()
            low, addressed = ceil_log2(depth), Signal(name=f"addressed_{first}")
            bank_data.append(Signal(len(write_data), name=f"bank_data_{first}", reset_less=True))
            # One signal per lane, so that synthesis finds the lanes that are written together.
            enables = [Signal(name=f"enable_{first}_{lane}") for lane in range(len(write.en))]
            for enable, enabled in zip(enables, write.en, strict=True):
                m.d.sync += enable.eq(enabled & (write.addr[low:] == first >> low))
            m.d.comb += [
                put.addr.eq(write_addr),
                put.data.eq(write_data),
                put.en.eq(Cat(enables)),
                get.addr.eq(addr),
                get.en.eq(asked & advance),
            ]
            same = put.en.any() & get.en & (put.addr == get.addr)
            must(m, platform, ~same, "a row is read while it is written")
            with m.If(advance):
                m.d.sync += [
                    addressed.eq(addr[low:] == first >> low),
                    bank_data[-1].eq(get.data & addressed.replicate(len(write_data))),
                ]
        m.d.comb += read.data.eq(reduce(or_, bank_data))
        return m


def _row_ports(rows, lanes, weight_bits):
    row = {"addr_width": ceil_log2(rows), "shape": lanes * weight_bits}
    return {
        "write": Out(memory.WritePort.Signature(**row, granularity=weight_bits)),
        "read": Out(memory.ReadPort.Signature(**row)),
    }
