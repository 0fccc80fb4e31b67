"""The memory of weight rows."""

from amaranth import Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.base import fabric
from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.sizes import check_size

__all__ = ["RowMemory"]


class RowMemory(wiring.Component):
    """Memory of weight rows, read whole and written lane by lane, but never both in one cycle.

    On an iCE40 UltraPlus it uses the four single-port RAMs if they hold all rows; elsewhere it is a
    `memory.Memory`.

    Timing. A write in cycle c is seen by reads from cycle c + 1 on. The data of a read enabled in
    cycle c are valid from cycle c + 1 until the next enabled read or write. A read must not be
    enabled in a cycle with a write: the write would be lost, or go to a wrong address.

    Parameters
    ----------
    rows : int
        Number of rows.
    lanes, weight_bits : int
        Weights of a row, and bits of each.
    init : iterable of int
        Rows after configuration, lane 0 lowest; rows left out are 0 (in single-port RAMs:
        undefined).

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

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def weight_bits(self) -> int:
        return self._weight_bits

    @property
    def init(self) -> list[int]:
        return self._init

    def elaborate(self, platform):
        own = fabric(platform).row_memory(self, getattr(platform, "device", ""))
        if own is not None:
            return own
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
