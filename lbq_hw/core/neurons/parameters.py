"""Bias, threshold and reset of every channel."""

from amaranth import Cat, Module, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2

from lbq_hw.core.memory.hints import APART

__all__ = ["Parameters"]


class Parameters(wiring.Component):
    """Holds the parameters of ``units`` channels per word.

    There are two memories, since the bias is needed earlier than the others.

    Timing. Reads take one cycle. A word must not be read while it is written.

    Parameters
    ----------
    units, membrane_bits, depth : int
        Channels of a word, signed width of a value, number of words.
    resets : bool
        Whether resets are kept; what is written of them is dropped if not.
    init : iterable of words
        As ``write`` takes them; words left out are 0.

    Members
    -------
    write : write port of ``3 * units`` values, one enable per value
        Bias, theta, reset of the first unit, then of the next.
    bias : read port of ``units`` values
    thresholds : read port of ``units`` structures: ``theta``, and ``reset`` if `resets`
    """

    def __init__(self, *, units: int, membrane_bits: int, depth: int, resets: bool = True, init=()):
        self._depth = depth
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
            kept = [i for i in range(len(self.write.data)) if i % 3 in values]
            m.submodules[name] = store = memory.Memory(
                shape=data.ArrayLayout(self.write.data[0].shape(), len(kept)),
                depth=self._depth,
                init=[[word[i] for i in kept] for word in self._init],
                attrs=APART,
            )
            read, write = store.read_port(), store.write_port(granularity=1)
            m.d.comb += [
                read.addr.eq(port.addr),
                read.en.eq(port.en),
                Cat(port.data).eq(Cat(read.data)),
                write.addr.eq(self.write.addr),
                write.en.eq(Cat(self.write.en[i] for i in kept)),
                Cat(write.data).eq(Cat(self.write.data[i] for i in kept)),
            ]
        return m
