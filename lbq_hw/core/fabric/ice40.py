"""Primitives of the iCE40: its PLL, its single-port RAMs, and the wait after configuration."""

from math import ceil

from amaranth import Array, Cat, ClockDomain, ClockSignal, Const, Instance, Module, Mux, Signal
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.utils import ceil_log2

from lbq_hw import families
from lbq_hw.core.fabric.base import Fabric, clock_input

__all__ = ["FABRIC", "WAKE_SECONDS"]

WAKE_SECONDS = 15e-6
"""How long an iCE40 is held in reset: for about 3 us after configuration its block RAMs read as 0,
whatever they hold. Lattice does not document it; Amaranth's platform waits as long."""
_SPRAMS = 4


class Ice40(Fabric):
    """On an UltraPlus, a `RowMemory` uses the four single-port RAMs if they hold all rows."""

    def pll(self, m, setting, pin, clock, locked):
        if families.plls()[setting.pll].pad:
            kind, source = "SB_PLL40_PAD", {"i_PACKAGEPIN": pin.io}
        else:
            kind, source = "SB_PLL40_CORE", {"i_REFERENCECLK": clock_input(m, pin)}
        return Instance(
            kind,
            **{f"p_{name}": value for name, value in setting.parameters.items()},
            **source,
            p_FEEDBACK_PATH="SIMPLE",
            i_RESETB=1,
            i_BYPASS=0,
            o_PLLOUTGLOBAL=clock,
            o_LOCK=locked,
        )

    def awake(self, m, made, locked, hertz):
        """Rises `WAKE_SECONDS` after the lock, rounded up to a power of two of cycles."""
        m.domains.wake = ClockDomain()
        cycles = ceil(WAKE_SECONDS * hertz)
        count = Signal((cycles - 1).bit_length() + 1)
        m.d.comb += ClockSignal("wake").eq(made)
        m.submodules.wake_reset = ResetSynchronizer(~locked, domain="wake")
        m.d.wake += count.eq(count + ~count[-1])
        return count[-1]

    def row_memory(self, rows, device):
        single = families.find("ice40").single_port
        lanes, bits = len(rows.write.en), rows.weight_bits
        columns, banks = single.shape(rows=rows.rows, lanes=lanes, weight_bits=bits)
        if device not in single.devices or columns * banks > _SPRAMS:
            return None
        if rows.init:
            raise ValueError(f"weights must be loaded on a {device}, not baked in")
        return _single_port(rows, single, columns, banks)


def _single_port(rows, single, columns, banks):
    """Rows in `banks` of single-port RAMs, `columns` RAMs in each; a lane takes whole nibbles."""
    m = Module()
    bits, lane_bits = rows.weight_bits, single.lane_bits(rows.weight_bits)
    read, write, row_bits = rows.read, rows.write, ceil_log2(single.rows)
    writes = write.en.any()
    addr, column_bits = Signal.like(read.addr), columns * single.bits
    read_bank = Signal(range(banks))
    data, mask = Signal(column_bits), Signal(column_bits // single.enable)
    banked = []
    m.d.comb += [
        # The read enable selects the address, because the host's writes arrive late in their cycle.
        addr.eq(Mux(read.en, read.addr, write.addr)),
        mask.eq(Cat(enable.replicate(lane_bits // single.enable) for enable in write.en)),
    ]
    for lane in range(len(write.en)):
        m.d.comb += data[lane * lane_bits :][:bits].eq(write.data[lane * bits :][:bits])
    for bank in range(banks):
        here = (addr >> row_bits) == bank
        row = Signal(column_bits, name=f"row_{bank}")
        banked.append(row)
        for column in range(columns):
            m.submodules[f"ram_{bank}_{column}"] = Instance(
                "SB_SPRAM256KA",
                i_ADDRESS=addr[:row_bits],
                i_DATAIN=data.word_select(column, single.bits),
                i_MASKWREN=mask.word_select(column, single.bits // single.enable),
                i_WREN=writes,
                i_CHIPSELECT=here & (writes | read.en),
                i_CLOCK=ClockSignal(),
                i_STANDBY=Const(0),
                i_SLEEP=Const(0),
                i_POWEROFF=Const(1),  # active low
                o_DATAOUT=row.word_select(column, single.bits),
            )
    with m.If(read.en):
        m.d.sync += read_bank.eq(addr >> row_bits)
    row = Array(banked)[read_bank]
    for lane in range(len(write.en)):
        m.d.comb += read.data[lane * bits :][:bits].eq(row[lane * lane_bits :][:bits])
    return m


FABRIC = Ice40()
