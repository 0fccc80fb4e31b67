"""A clock generator: a PLL as an instance of its family's primitive."""

from amaranth import Elaboratable, Module, Signal

from lbq_hw.boards.clocks import Setting
from lbq_hw.core.fabric.base import fabric

__all__ = ["ClockGenerator"]


class ClockGenerator(Elaboratable):
    """A PLL between a clock pin and a clock.

    Parameters
    ----------
    setting : `Setting`
    pin : port
        The pin of the input clock, as a platform gives it with ``dir="-"``.

    Members
    -------
    clock : Signal, out
    locked : Signal, out
        Low until the clock is stable.
    """

    def __init__(self, *, setting: Setting, pin):
        self._setting = setting
        self._pin = pin
        self.clock = Signal()
        self.locked = Signal()

    def elaborate(self, platform):
        m = Module()
        m.submodules.primitive = fabric(platform).pll(
            m, self._setting, self._pin, self.clock, self.locked
        )
        return m
