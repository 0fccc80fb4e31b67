"""What differs between fabrics: the one place with a vendor's primitives.

Every block here has a portable form, which is what is simulated, and for some devices a form of
their own with the same contract, chosen by ``platform.device``.
"""

from amaranth import Array, Cat, ClockSignal, Const, Instance, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.sizes import check_size

__all__ = ["RowMemory", "initialised"]

_SPRAM_DEVICES = ("iCE40UP3K", "iCE40UP5K")
_SPRAM_COUNT = 4
_SPRAM_ROWS = 1 << 14
_SPRAM_BITS = 16
_NIBBLE = 4  # bits under one write enable


def initialised(device: str | None) -> bool:
    """Whether a `RowMemory` can have contents after configuration on a device."""
    return device not in _SPRAM_DEVICES


class RowMemory(wiring.Component):
    """Memory of weight rows, read whole and written lane by lane, but never both in one cycle.

    On an iCE40 UltraPlus it lies in the four single-port RAMs, if they hold all rows; elsewhere it
    is a `memory.Memory`.

    Timing. A write in cycle c is seen by reads from cycle c + 1 on. The data of a read enabled in
    cycle c are there in cycle c + 1, and stay until the next enabled read or write. A read must not
    be enabled in a cycle with a write: the write would be lost, or go elsewhere.

    Parameters
    ----------
    rows : int
        Number of rows.
    lanes, weight_bits : int
        Weights of a row, and bits of each.
    init : iterable of int
        Rows after configuration, lane 0 lowest; those left out are 0 (in single-port RAMs:
        anything).

    Members
    -------
    write : write port of a row, one enable per lane
    read : read port of a row
    """

    def __init__(self, *, rows: int, lanes: int, weight_bits: int, init=()):
        check_size("rows", rows)
        check_size("lanes", lanes)
        check_size("weight_bits", weight_bits)
        self._rows = rows
        self._weight_bits = weight_bits
        self._init = list(init)
        row = {"addr_width": ceil_log2(rows), "shape": lanes * weight_bits}
        super().__init__(
            {
                "write": Out(memory.WritePort.Signature(**row, granularity=weight_bits)),
                "read": Out(memory.ReadPort.Signature(**row)),
            }
        )

    def elaborate(self, platform):
        lane_bits = -(-self._weight_bits // _NIBBLE) * _NIBBLE
        columns = -(-len(self.write.en) * lane_bits // _SPRAM_BITS)
        banks = -(-self._rows // _SPRAM_ROWS)
        device = getattr(platform, "device", None)
        if device not in _SPRAM_DEVICES or columns * banks > _SPRAM_COUNT:
            return self._portable(platform)
        if self._init:
            raise ValueError(f"weights must be loaded on a {device}, not baked in")
        return self._single_port(columns, banks, lane_bits)

    def _portable(self, platform):
        m = Module()
        m.submodules.memory = store = memory.Memory(
            shape=len(self.read.data), depth=self._rows, init=self._init, attrs=APART
        )
        wiring.connect(
            m, wiring.flipped(self.write), store.write_port(granularity=self._weight_bits)
        )
        wiring.connect(m, wiring.flipped(self.read), store.read_port())
        must(m, platform, ~(self.read.en & self.write.en.any()), "a row is read during a write")
        return m

    def _single_port(self, columns, banks, lane_bits):
        """`banks` of RAMs that share their rows, `columns` in each, a lane in whole nibbles."""
        m = Module()
        bits, parts = self._weight_bits, lane_bits // _NIBBLE
        writes = self.write.en.any()
        addr, column_bits = Signal.like(self.read.addr), columns * _SPRAM_BITS
        read_bank = Signal(range(banks))
        data, mask = Signal(column_bits), Signal(column_bits // _NIBBLE)
        banked = []
        m.d.comb += [
            # The read chooses the address, since the host's writes are known late in their cycle.
            addr.eq(Mux(self.read.en, self.read.addr, self.write.addr)),
            mask.eq(Cat(enable.replicate(parts) for enable in self.write.en)),
        ]
        for lane in range(len(self.write.en)):
            m.d.comb += data[lane * lane_bits :][:bits].eq(self.write.data[lane * bits :][:bits])
        for bank in range(banks):
            here = (addr >> ceil_log2(_SPRAM_ROWS)) == bank
            row = Signal(column_bits, name=f"row_{bank}")
            banked.append(row)
            for column in range(columns):
                m.submodules[f"ram_{bank}_{column}"] = Instance(
                    "SB_SPRAM256KA",
                    i_ADDRESS=addr[: ceil_log2(_SPRAM_ROWS)],
                    i_DATAIN=data.word_select(column, _SPRAM_BITS),
                    i_MASKWREN=mask.word_select(column, _SPRAM_BITS // _NIBBLE),
                    i_WREN=writes,
                    i_CHIPSELECT=here & (writes | self.read.en),
                    i_CLOCK=ClockSignal(),
                    i_STANDBY=Const(0),
                    i_SLEEP=Const(0),
                    i_POWEROFF=Const(1),  # active low
                    o_DATAOUT=row.word_select(column, _SPRAM_BITS),
                )
        with m.If(self.read.en):
            m.d.sync += read_bank.eq(addr >> ceil_log2(_SPRAM_ROWS))
        row = Array(banked)[read_bank]
        for lane in range(len(self.write.en)):
            m.d.comb += self.read.data[lane * bits :][:bits].eq(row[lane * lane_bits :][:bits])
        return m
