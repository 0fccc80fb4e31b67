"""Bias, threshold and reset of every channel."""

from amaranth import Cat, Module, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.fabric.registers import copies
from lbq_hw.core.neurons.partial_sums import UNITS_A_COPY

__all__ = ["Parameters"]


class Parameters(wiring.Component):
    """Holds the parameters of ``units`` channels per word.

    There are two memories, since the bias is needed earlier than the others; if they are ``far``,
    two for each `UNITS_A_COPY` units, with registers of their own for what is written and for the
    addresses.

    Timing. Reads take one cycle. A word must not be read while it is written. If ``far``, reads
    take two cycles, there is one in every cycle whatever the enables are, and a write in cycle c is
    seen by reads from cycle c + 1 on.

    Parameters
    ----------
    units, membrane_bits, depth : int
        Channels of a word, signed width of a value, number of words.
    resets : bool
        Whether resets are kept; what is written of them is dropped if not.
    far : bool
        The units are all over the chip.
    inverted : bool
        Thresholds lie in their memory with all bits inverted. This spares an iCE40 the inverters in
        front of units that subtract what they read without a register between.
    init : iterable of words
        As ``write`` takes them; words left out are 0.

    Members
    -------
    write : write port of ``3 * units`` values, one enable per value
        Bias, theta, reset of the first unit, then of the next.
    bias : read port of ``units`` values
    thresholds : read port of ``units`` structures: ``theta``, and ``reset`` if `resets`
    """

    def __init__(
        self,
        *,
        units: int,
        membrane_bits: int,
        depth: int,
        resets: bool = True,
        far: bool = False,
        inverted: bool = False,
        init=(),
    ):
        self._depth = depth
        self._far = far
        self._inverted = inverted
        self._init = [list(word) for word in init]
        addr_width, value = ceil_log2(depth), signed(membrane_bits)
        self._kept = ("theta", "reset") if resets else ("theta",)
        threshold = data.StructLayout(dict.fromkeys(self._kept, value))
        write = memory.WritePort.Signature(
            addr_width=addr_width, shape=data.ArrayLayout(value, 3 * units), granularity=1
        )

        def read(shape):
            words = data.ArrayLayout(shape, units)
            return Out(memory.ReadPort.Signature(addr_width=addr_width, shape=words))

        super().__init__({"write": Out(write), "bias": read(value), "thresholds": read(threshold)})

    def elaborate(self, _platform):
        m = Module()
        for name, port, values in (
            ("bias", self.bias, (0,)),
            ("theta", self.thresholds, range(1, 1 + len(self._kept))),
        ):
            count = len(port.data)
            if not self._far:
                self._keep(m, name, port, values, range(count))
                continue
            for first in range(0, count, UNITS_A_COPY):
                units = range(first, min(first + UNITS_A_COPY, count))
                self._keep(m, f"{name}_{first}", port, values, units)
        return m

    def _keep(self, m, name, port, values, units):
        """The memory of some units that a read port reads."""
        kept = [3 * unit + value for unit in units for value in values]
        init = [[word[i] for i in kept] for word in self._init]
        inverts = self._inverted and port is self.thresholds
        if inverts:
            init += [[0] * len(kept)] * (self._depth - len(init))
            init = [[~value for value in word] for word in init]
        m.submodules[name] = store = memory.Memory(
            shape=data.ArrayLayout(self.write.data[0].shape(), len(kept)),
            depth=self._depth,
            init=init,
            attrs=APART,
        )
        read, write = store.read_port(), store.write_port(granularity=1)
        read_addr, read_en, write_addr = port.addr, port.en, self.write.addr
        shown = Cat(port.data)
        write_en = Cat(self.write.en[i] for i in kept)
        given = Cat(self.write.data[i] for i in kept)
        if self._far:
            (read_addr,) = copies(m, port.addr, 1, name=f"{name}_read_addr")
            (write_addr,) = copies(m, self.write.addr, 1, name=f"{name}_write_addr")
            (write_en,) = copies(m, write_en, 1, name=f"{name}_write_en")
            (given,) = copies(m, given, 1, name=f"{name}_given")
            read_en, shown = 1, Cat(port.data[unit] for unit in units)
        m.d.comb += [
            read.addr.eq(read_addr),
            read.en.eq(read_en),
            shown.eq(~Cat(read.data) if inverts else Cat(read.data)),
            write.addr.eq(write_addr),
            write.en.eq(write_en),
            Cat(write.data).eq(~given if inverts else given),
        ]
