"""The parts that differ between FPGA families, in the portable form that is simulated. `fabric`
finds a family's own form, which has the same contract.
"""

from amaranth import ClockDomain, ClockSignal, Module
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from lbq_hw import families

__all__ = ["Fabric", "clock_input", "fabric"]


class Fabric:
    """Primitives of a family of FPGAs, or their portable forms."""

    def pll(self, m: Module, setting, pin, clock, locked):
        """The instance of a PLL that makes ``clock`` of a pin, as a `Setting` says."""
        del m, pin, clock, locked
        raise families.FamilyError(
            f"the family of the PLL {setting.pll} has no primitive for it: see docs/families.md"
        )

    def start(self, m: Module, made, locked, *, hertz: int, large: bool):
        """Make the domain ``sync``, which runs at ``hertz`` from the PLL's clock ``made``, and is
        in reset until the PLL is ``locked``. ``large``: the core fills the chip.
        """
        del large
        m.domains.sync = ClockDomain()
        m.d.comb += ClockSignal("sync").eq(made)
        m.submodules.reset = ResetSynchronizer(~self.awake(m, made, locked, hertz), domain="sync")

    def awake(self, m: Module, made, locked, hertz: int):
        """A signal that rises when registers and block RAMs can be used."""
        del m, made, hertz
        return locked

    def data_pins(self, port: io.SingleEndedPort):
        """The data pins of an SDRAM, with the members of `io.DDRBuffer`."""
        return io.DDRBuffer("io", port)

    def row_memory(self, rows, device: str):
        """The module for a `RowMemory` on a device, or None for the portable one."""
        del rows, device
        return None


def fabric(platform) -> Fabric:
    """The fabric of a platform; the portable one in simulation."""
    found = families.of_platform(platform)
    if found is None:
        return Fabric()
    return families.module(__package__, found.name, what="primitives").FABRIC


def clock_input(m: Module, pin):
    """The clock signal of a pin."""
    m.submodules.clock_pin = buffer = io.Buffer("i", pin)
    return buffer.i
