"""Bias, threshold and reset of every channel."""

from amaranth import Cat, Module, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2

from lbq_hw.core.memory.apart import APART

__all__ = ["Parameters"]


class Parameters(wiring.Component):
    """Words of the parameters of ``units`` channels, in two memories: the bias is needed earlier.

    Timing. Reads take a cycle. A word must not be read while it is written.

    Parameters
    ----------
    units, membrane_bits, depth : int
        Channels of a word, signed width of a value, number of words.
    init : iterable of words
        As ``write`` takes them; words left out are 0.

    Members
    -------
    write : write port of ``3 * units`` values, one enable a value
        Bias, theta, reset of the first unit, then of the next.
    bias : read port of ``units`` values
    thresholds : read port of ``2 * units`` values
        Theta and reset of the first unit, then of the next.
    """

    def __init__(self, *, units: int, membrane_bits: int, depth: int, init=()):
        self._depth = depth
        self._init = [list(word) for word in init]
        addr_width = ceil_log2(depth)

        def values(count):
            return data.ArrayLayout(signed(membrane_bits), count * units)

        def read(count):
            return memory.ReadPort.Signature(addr_width=addr_width, shape=values(count))

        write = memory.WritePort.Signature(addr_width=addr_width, shape=values(3), granularity=1)
        super().__init__({"write": Out(write), "bias": Out(read(1)), "thresholds": Out(read(2))})

    def elaborate(self, _platform):
        m = Module()
        given = self.write
        m.submodules.bias = bias = memory.Memory(
            shape=self.bias.data.shape(),
            depth=self._depth,
            init=[word[0::3] for word in self._init],
            attrs=APART,
        )
        m.submodules.theta = theta = memory.Memory(
            shape=self.thresholds.data.shape(),
            depth=self._depth,
            init=[[x for i, x in enumerate(word) if i % 3] for word in self._init],
            attrs=APART,
        )
        bias_write, theta_write = bias.write_port(granularity=1), theta.write_port(granularity=1)
        wiring.connect(m, wiring.flipped(self.bias), bias.read_port())
        wiring.connect(m, wiring.flipped(self.thresholds), theta.read_port())
        others = [i for i in range(len(given.data)) if i % 3]
        m.d.comb += [
            bias_write.addr.eq(given.addr),
            bias_write.en.eq(given.en[0::3]),
            Cat(bias_write.data).eq(Cat(given.data[i] for i in range(0, len(given.data), 3))),
            theta_write.addr.eq(given.addr),
            theta_write.en.eq(Cat(given.en[i] for i in others)),
            Cat(theta_write.data).eq(Cat(given.data[i] for i in others)),
        ]
        return m
