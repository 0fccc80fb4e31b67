"""Memories that fill a good part of a chip."""

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.fabric.registers import copies
from lbq_hw.core.sizes import check_size

__all__ = ["SpreadMemory", "SpreadRows", "banks", "slices"]

_RAMS = 8  # block RAMs of a slice
_RAM_BITS = 18 * 1024
_WIDEST = 36
_LEAST_BANK = 512


def slices(width: int, depth: int) -> list[slice]:
    """The slices of a word: each slice's bits fill a few neighbouring block RAMs."""
    bits = _RAMS * max(1, min(_WIDEST, _RAM_BITS >> ceil_log2(depth)))
    return [slice(i, min(i + bits, width)) for i in range(0, width, bits)]


def banks(depth: int, *, most: int = 1 << 32) -> list[tuple[int, int]]:
    """First word and size of each bank, largest first. Sizes are powers of two up to `most`; a rest
    of fewer than `_LEAST_BANK` words is one bank.
    """
    found, first = [], 0
    while first < depth:
        size = min(most, 1 << (depth - first).bit_length() - 1)
        if size < _LEAST_BANK:
            size = depth - first
        found.append((first, size))
        first += size
    return found


class SpreadMemory(wiring.Component):
    """A memory of wide words in slices, each with its own input and output registers.

    A single register that drives all block RAMs would drive wires across the whole chip. Here each
    register drives only a few block RAMs, and the wires to them have a whole cycle.

    Timing. The memory never stalls. A write in cycle c is seen by reads enabled from cycle c + 1
    on; a word must not be read in the cycle in which it is written. The data of a read enabled in
    cycle c are valid only in cycle ``c + LATENCY``.

    Parameters
    ----------
    width, depth : int
        Bits of a word, and words.
    granule : int, optional
        Bits written under one enable; each granule is a slice. Without it, words are written whole.

    Members
    -------
    write : write port of a word
    read : read port of a word
    """

    LATENCY = 4
    """Cycles of a read: to the memory, the read itself, its output register, and back."""

    def __init__(self, *, width: int, depth: int, granule: int | None = None):
        check_size("width", width)
        check_size("depth", depth)
        self._depth = depth
        self._slices = slices(width, depth)
        if granule is not None:
            self._slices = [slice(i, i + granule) for i in range(0, width, granule)]
        word = {"addr_width": ceil_log2(depth), "shape": width}
        super().__init__(
            {
                "write": Out(memory.WritePort.Signature(**word, granularity=granule)),
                "read": Out(memory.ReadPort.Signature(**word)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, write, read = len(self._slices), self.write, self.read
        write_addr = copies(m, write.addr, count, name="write_addr")
        read_addr = copies(m, read.addr, count, name="read_addr")
        read_en = copies(m, read.en, count, name="read_en")
        write_en = copies(m, write.en, count, name="write_en") if len(write.en) == 1 else None
        for i, bits in enumerate(self._slices):
            width = bits.stop - bits.start
            write_data = Signal(width, name=f"write_data_{i}", reset_less=True)
            writes = write_en[i] if write_en else Signal(name=f"write_en_{i}")
            m.d.sync += write_data.eq(write.data[bits])
            if not write_en:
                m.d.sync += writes.eq(write.en[i])
            bank_data = []
            for first, depth in banks(self._depth):
                m.submodules[f"slice_{i}_{first}"] = part = memory.Memory(
                    shape=width, depth=depth, init=[], attrs=APART
                )
                put, get = part.write_port(), part.read_port()
                bank_data.append(Signal(width, name=f"bank_data_{i}_{first}", reset_less=True))
                low = ceil_log2(depth)
                m.d.comb += [
                    put.addr.eq(write_addr[i]),
                    put.data.eq(write_data),
                    put.en.eq(writes & (write_addr[i][low:] == first >> low)),
                    get.addr.eq(read_addr[i]),
                    get.en.eq(read_en[i] & (read_addr[i][low:] == first >> low)),
                ]
                m.d.sync += bank_data[-1].eq(get.data)
            taken = Signal(width, name=f"taken_{i}", reset_less=True)
            m.d.sync += taken.eq(self._choose(m, read_addr[i], bank_data))
            m.d.comb += read.data[bits].eq(taken)
        same = read.en & write.en.any() & (read.addr == write.addr)
        must(m, platform, ~same, "a word is read while it is written")
        return m

    def _choose(self, m, asked, bank_data):
        """The data of the bank that was addressed two cycles ago."""
        for cycle in range(2):
            later = Signal.like(asked, name=f"asked_{cycle}", reset_less=True)
            m.d.sync += later.eq(asked)
            asked = later
        chosen = bank_data[0]
        for (first, depth), word in list(zip(banks(self._depth), bank_data, strict=True))[1:]:
            low = ceil_log2(depth)
            chosen = Mux(asked[low:] == first >> low, word, chosen)
        return chosen


class SpreadRows(wiring.Component):
    """As `SpreadMemory`, but its read pipeline can be stalled.

    Timing. The read pipeline advances only in cycles with ``advance``, and holds in all others. Of
    three such cycles, the address is given in the first and the memory is read in the second. The
    data are valid from the cycle after the second until the third. A write in cycle c is stored in
    cycle c + 1; a read of the same word in that cycle returns undefined data.

    Parameters
    ----------
    width, depth : int
        Bits of a word, and words.
    advance : int
        Number of copies of the bit ``advance``.

    Members
    -------
    write : write port of a word
    read : read port of a word
    advance : in, copies of one bit
        The read pipeline advances in this cycle.
    """

    def __init__(self, *, width: int, depth: int, advance: int):
        check_size("width", width)
        check_size("depth", depth)
        check_size("advance", advance)
        self._depth = depth
        word = {"addr_width": ceil_log2(depth), "shape": width}
        super().__init__(
            {
                "write": Out(memory.WritePort.Signature(**word)),
                "read": Out(memory.ReadPort.Signature(**word)),
                "advance": In(advance),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        write, read = self.write, self.read
        parts = slices(len(write.data), self._depth)
        write_addr = copies(m, write.addr, len(parts), name="write_addr")
        write_en = copies(m, write.en, len(parts), name="write_en")
        for i, bits in enumerate(parts):
            m.submodules[f"slice_{i}"] = part = memory.Memory(
                shape=bits.stop - bits.start, depth=self._depth, init=[], attrs=APART
            )
            put, get = part.write_port(), part.read_port()
            advance = self.advance[i * len(self.advance) // len(parts)]
            asked = Signal(name=f"asked_{i}")
            with m.If(advance):  # each slice has its own copy, so these registers are not merged
                m.d.sync += [get.addr.eq(read.addr), asked.eq(read.en)]
            write_data = Signal(bits.stop - bits.start, name=f"write_data_{i}", reset_less=True)
            m.d.sync += write_data.eq(write.data[bits])
            m.d.comb += [
                put.data.eq(write_data),
                put.addr.eq(write_addr[i]),
                put.en.eq(write_en[i]),
                get.en.eq(asked & advance),
                read.data[bits].eq(get.data),
            ]
        return m
