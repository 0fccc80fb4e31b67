"""SDRAM chips of boards: geometry, timings, and the timings in cycles of a clock.

Timings are in picoseconds, so that their conversion to cycles has no rounding errors. If a board is
sold with one of several chips, its entry has the slowest timing and the smallest geometry of all.
"""

from dataclasses import dataclass, fields

__all__ = [
    "CALIBRATION_WORDS", "CAS_LATENCY", "CHIPS", "COLORLIGHT", "ICESUGAR_PRO", "PARTS",
    "TANG_NANO_20K", "ULX3S", "Chip", "Cycles", "usual",
]  # fmt: skip

CAS_LATENCY = 3
"""Cycles from a read to its first word. Every chip allows 3 at every clock. With 2, the words of
some chips come 2 ns later after the edge (MT48LC16M16A2-6A: tAC of 7.5 instead of 5.4 ns), and no
run would be shorter, because words are always delayed as if the last capture were in use."""
CALIBRATION_WORDS = 16
"""The last words of a memory, which calibration overwrites."""
_SECOND = 10**12
_LEAST_CYCLES = 2  # of write recovery and after the mode register, at any clock
_CONTROL = 32  # bound on the cycles of a write, or of its wait for words in flight


@dataclass(frozen=True, kw_only=True)
class Cycles:
    """Timings of a chip in cycles of a clock, each rounded to the safe side.

    Members
    -------
    rcd, rp, rfc, mrd, wr : int
        As in `Chip`.
    ras : int
        From activating a row to closing it, so that tRC holds too.
    refresh : int
        From one due refresh to the next. A refresh may wait for the end of a page, so the interval
        leaves room for this delay within the chip's refresh period.
    power_up : int
        Before the first command.
    """

    rcd: int
    rp: int
    ras: int
    rfc: int
    wr: int
    mrd: int
    refresh: int
    power_up: int


@dataclass(frozen=True, kw_only=True)
class Chip:
    """An SDR SDRAM: a word of `data_bits` at every row, bank and column.

    A linear address counts columns, then banks, then rows.

    Members
    -------
    name : str
    data_bits, row_bits, column_bits, bank_bits : int
    rcd, rp, ras, rc, rfc, rrd, wr, mrd : int
        Least times in ps: activate to read or write, precharge to activate, activate to precharge,
        activate to activate of a bank, refresh to any command, activate to activate of two banks,
        write to precharge, mode register to any command.
    refresh : int
        Longest time in ps from a refresh to the next, on average over all rows.
    power_up : int
        Time in ps before the first command.
    period : int
        Shortest clock period in ps with a CAS latency of 3.
    access, hold, release : int
        Times in ps after a clock edge: until the data launched by this edge are valid (tAC,
        maximum), until the data of the previous edge become invalid (tOH, minimum), and until the
        chip stops driving (tHZ, maximum).
    delay_least, delay_most : int
        Minimum and maximum delay in ps of the board's pads and wires: from an edge of the core's
        clock to the same edge at the chip, and back from the chip's data pins to the sampling
        register. The maximum includes the register's set-up time; the minimum deducts its hold
        time.
    """

    name: str
    data_bits: int
    row_bits: int
    column_bits: int
    bank_bits: int
    rcd: int
    rp: int
    ras: int
    rc: int
    rfc: int
    rrd: int
    wr: int
    mrd: int
    refresh: int
    power_up: int
    period: int
    access: int
    hold: int
    release: int
    delay_least: int
    delay_most: int

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and (type(value) is not int or value < 1):
                raise ValueError(f"{field.name} must be a positive integer, not {value!r}")
        if self.data_bits not in (16, 32):
            raise ValueError(f"data_bits must be 16 or 32, not {self.data_bits!r}")
        for name, most in (("column_bits", 10), ("row_bits", 16), ("bank_bits", 4)):
            if getattr(self, name) > most:
                raise ValueError(f"{name} must be at most {most}, not {getattr(self, name)!r}")
        if self.hold >= self.access:
            raise ValueError(f"hold must be less than access ({self.access}), not {self.hold!r}")
        if self.delay_least > self.delay_most:
            raise ValueError(
                f"delay_least must be at most delay_most ({self.delay_most}), not "
                f"{self.delay_least!r}"
            )

    @property
    def address_bits(self) -> int:
        """Bits of a linear address of words."""
        return self.row_bits + self.bank_bits + self.column_bits

    @property
    def words(self) -> int:
        """Words of the memory."""
        return 1 << self.address_bits

    @property
    def size_bytes(self) -> int:
        """Bytes of the memory."""
        return self.words * self.data_bits // 8

    @property
    def tape_bytes(self) -> int:
        """Size of the longest tape, which ends before the words that calibration overwrites."""
        return (self.words - CALIBRATION_WORDS) * self.data_bits // 8

    @property
    def page_words(self) -> int:
        """Words of a row in one bank: the length of a page read."""
        return 1 << self.column_bits

    @property
    def pin_bits(self) -> int:
        """Address pins: a row, or a column beside the bit 10 of a precharge of all banks."""
        return max(self.row_bits, 11)

    def cycles(self, clock_hz: int) -> Cycles:
        """Timings at a clock; ValueError if the clock is too fast or too slow for the chip."""
        if type(clock_hz) is not int or clock_hz < 1:
            raise ValueError(f"clock_hz must be a positive integer, not {clock_hz!r}")

        def up(time: int) -> int:
            return -(-time * clock_hz // _SECOND)

        if self.period * clock_hz > _SECOND:
            most = _SECOND // self.period
            raise ValueError(f"clock_hz must be at most {most} for {self.name}, not {clock_hz!r}")
        rp, wr = up(self.rp), max(_LEAST_CYCLES, up(self.wr))
        ras = max(up(self.ras), up(self.rc) - rp)
        rows, rcd = 1 << self.row_bits, up(self.rcd)
        late = rcd + self.page_words + rp + ras + wr + _CONTROL
        refresh = (rows * self.refresh * clock_hz // _SECOND - late) // rows
        if refresh <= 2 * up(self.rfc):
            raise ValueError(
                f"clock_hz must leave {self.name} time between refreshes, not be {clock_hz!r}"
            )
        return Cycles(
            rcd=rcd,
            rp=rp,
            ras=ras,
            rfc=up(self.rfc),
            wr=wr,
            mrd=max(_LEAST_CYCLES, up(self.mrd)),
            refresh=refresh,
            power_up=up(self.power_up),
        )


# Pads of an ECP5 of speed grade 6 with LVCMOS33, from the timing database of Project Trellis
# (ECP5/timing/speed_6/cells.json, ps): ODDRX1F from clock to output 983 to 987, output pad 1,988 to
# 2,674, input pad 990 to 1,140, IDDRX1F with a set-up time of 401 and a hold time of 235. The
# database has slow chips only: a fast one is taken as twice as fast. Wires of 1 to 2 cm, there and
# back, are an estimate: 100 to 300 ps.
_PADS_LEAST = (983 + 1_988 + 990) // 2 - 235
_PADS_MOST = 987 + 2_674 + 1_140 + 401
_WIRES_LEAST, _WIRES_MOST = 100, 300
# Data sheets of IS42S16160G-7, IS42S16160B-7, MT48LC16M16A2-75 and -6A, AS4C32M16SB-7 (only half of
# its 1,024 columns are used).
_SLOWEST_16 = {
    "data_bits": 16,
    "row_bits": 13,
    "column_bits": 9,
    "bank_bits": 2,
    "rcd": 21_000,
    "rp": 21_000,
    "ras": 45_000,
    "rc": 67_500,
    "rfc": 70_000,
    "rrd": 15_000,
    "wr": 15_000,
    "mrd": 15_000,
    "refresh": 7_812_500,
    "power_up": 200_000_000,
    "period": 7_500,
    "access": 5_400,
    "hold": 2_500,
    "release": 6_500,
    "delay_least": _PADS_LEAST + _WIRES_LEAST,
    "delay_most": _PADS_MOST + _WIRES_MOST,
}
ULX3S = Chip(name="ULX3S", **_SLOWEST_16)
ICESUGAR_PRO = Chip(name="iCESugar-pro", **_SLOWEST_16)
# Chips of 2 M words of 32 bits in their slower grades (AS4C2M32SA-7, M12L64322A-7). tAC is that of
# the slowest, rounded up, and tRFC that of the chips of 16 bits.
_SLOWEST_32 = _SLOWEST_16 | {
    "data_bits": 32,
    "row_bits": 11,
    "column_bits": 8,
    "refresh": 15_625_000,
    "rc": 66_000,
    "access": 6_000,
}
# In the package of a GW2AR-18, with wires of some millimetres. Its maker gives no more than the
# geometry and a clock of up to 166 MHz: other timings are those of chips of that geometry, and tAC
# that of their grade for 166 MHz. No source has the times of the FPGA's pads: those of an ECP5 are
# assumed.
TANG_NANO_20K = Chip(
    name="Tang Nano 20K",
    **_SLOWEST_32 | {"access": 5_500, "delay_least": _PADS_LEAST, "delay_most": _PADS_MOST},
)
# EM638325BK-6H on the i5, M12L64322A on the i9: the same geometry, and no slower.
COLORLIGHT = Chip(name="Colorlight", **_SLOWEST_32)
CHIPS = (ULX3S, ICESUGAR_PRO, TANG_NANO_20K, COLORLIGHT)
"""The chips of every board."""
PARTS = {
    **dict.fromkeys(("IS42S16160B", "IS42S16160G", "MT48LC16M16A2", "AS4C32M16SB"), ULX3S),
    **dict.fromkeys(("AS4C2M32SA", "EM638325BK", "M12L64322A"), COLORLIGHT),
}
"""The same by part numbers, in any speed grade: the timings are those of the slowest."""


def usual(word_bits: int) -> tuple[Chip, int]:
    """The chip and the clock that are assumed for a memory of this width without a board."""
    if word_bits == TANG_NANO_20K.data_bits:
        return TANG_NANO_20K, 60_000_000
    return ULX3S, 80_000_000
