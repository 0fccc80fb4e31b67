"""Memory of the bias, the threshold and the rules' parameters of every channel."""

from collections.abc import Sequence

from amaranth import Cat, Module, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.fabric.registers import copies
from lbq_hw.core.fabric.sharing import SPREAD_UNITS

__all__ = ["CompactParameters", "Parameters", "SpreadParameters"]


class Parameters(wiring.Component):
    """Holds the parameters of ``units`` channels per word.

    There are two memories, because the bias is needed earlier than the other values.

    Timing. Reads take one cycle. A read of a word in the cycle of its write is undefined.

    Parameters
    ----------
    units, membrane_bits, depth : int
        Channels of a word, signed width of a value, number of words.
    values : sequence of names
        The values written per channel, in this order: ``bias``, ``theta``, then others.
    dropped : sequence of names
        The values that are written but not stored.
    init : iterable of words
        Contents after configuration, as ``write`` takes them; words left out are 0.

    Members
    -------
    write : write port of the `values` of ``units`` channels, one enable per value
        The values of the first unit, then of the next.
    bias : read port of ``units`` values
    thresholds : read port of ``units`` structures: ``theta``, and the other values that are stored
    """

    def __init__(
        self,
        *,
        units: int,
        membrane_bits: int,
        depth: int,
        values: Sequence[str] = ("bias", "theta", "reset"),
        dropped: Sequence[str] = (),
        init=(),
    ):
        self._depth = depth
        self._values = tuple(values)
        self._init = [list(word) for word in init]
        addr_width, value = ceil_log2(depth), signed(membrane_bits)
        self._kept = [name for name in values if name != "bias" and name not in dropped]
        threshold = data.StructLayout(dict.fromkeys(self._kept, value))
        write = memory.WritePort.Signature(
            addr_width=addr_width,
            shape=data.ArrayLayout(value, len(self._values) * units),
            granularity=1,
        )

        def read(shape):
            words = data.ArrayLayout(shape, units)
            return Out(memory.ReadPort.Signature(addr_width=addr_width, shape=words))

        super().__init__({"write": Out(write), "bias": read(value), "thresholds": read(threshold)})

    def elaborate(self, _platform):
        m = Module()
        self._keep(m, "bias", self.bias, ["bias"])
        self._keep(m, "theta", self.thresholds, self._kept)
        return m

    def _places(self, units, names):
        """Places of these values, for some channels, in a written word."""
        each, places = len(self._values), [self._values.index(name) for name in names]
        return [each * unit + place for unit in units for place in places]

    def _keep(self, m, name, port, values):
        """Add the memory behind a read port; it holds these values of each channel."""
        kept = self._places(range(len(port.data)), values)
        read, write = self._store(m, name, kept, [[word[i] for i in kept] for word in self._init])
        m.d.comb += [
            read.addr.eq(port.addr),
            read.en.eq(port.en),
            Cat(port.data).eq(Cat(read.data)),
            write.addr.eq(self.write.addr),
            write.en.eq(Cat(self.write.en[i] for i in kept)),
            Cat(write.data).eq(Cat(self.write.data[i] for i in kept)),
        ]

    def _store(self, m, name, kept, init):
        """A memory of some of the values of a word, and its two ports."""
        m.submodules[name] = store = memory.Memory(
            shape=data.ArrayLayout(self.write.data[0].shape(), len(kept)),
            depth=self._depth,
            init=init,
            attrs=APART,
        )
        return store.read_port(), store.write_port(granularity=1)


class CompactParameters(Parameters):
    """As `Parameters`, but thresholds are stored with all bits inverted.

    On an iCE40 this saves the inverters in front of units that subtract the memory's output without
    a register in between.
    """

    def _keep(self, m, name, port, values):
        if port is not self.thresholds:
            super()._keep(m, name, port, values)
            return
        kept = self._places(range(len(port.data)), values)
        words = [[word[i] for i in kept] for word in self._init]
        words += [[0] * len(kept)] * (self._depth - len(words))
        read, write = self._store(m, name, kept, [[~value for value in word] for word in words])
        m.d.comb += [
            read.addr.eq(port.addr),
            read.en.eq(port.en),
            Cat(port.data).eq(~Cat(read.data)),
            write.addr.eq(self.write.addr),
            write.en.eq(Cat(self.write.en[i] for i in kept)),
            Cat(write.data).eq(~Cat(self.write.data[i] for i in kept)),
        ]


class SpreadParameters(Parameters):
    """As `Parameters`, for units that are spread over the chip.

    Each `SPREAD_UNITS` units have two memories of their own, with their own registers for write
    data and addresses.

    Timing. Reads take two cycles. There is a read in every cycle; the read enables are ignored. A
    write in cycle c is seen by reads from cycle c + 1 on.
    """

    def _keep(self, m, name, port, values):
        count = len(port.data)
        for first in range(0, count, SPREAD_UNITS):
            units = range(first, min(first + SPREAD_UNITS, count))
            self._keep_some(m, f"{name}_{first}", port, values, units)

    def _keep_some(self, m, name, port, values, units):
        kept = self._places(units, values)
        read, write = self._store(m, name, kept, [[word[i] for i in kept] for word in self._init])
        (read_addr,) = copies(m, port.addr, 1, name=f"{name}_read_addr")
        (write_addr,) = copies(m, self.write.addr, 1, name=f"{name}_write_addr")
        enables, values = (
            Cat(given[i] for i in kept) for given in (self.write.en, self.write.data)
        )
        (write_en,) = copies(m, enables, 1, name=f"{name}_write_en")
        (given,) = copies(m, values, 1, name=f"{name}_given")
        m.d.comb += [
            read.addr.eq(read_addr),
            read.en.eq(1),
            Cat(port.data[unit] for unit in units).eq(Cat(read.data)),
            write.addr.eq(write_addr),
            write.en.eq(write_en),
            Cat(write.data).eq(given),
        ]
