"""Platforms that amaranth-boards does not have, or not with a serial port."""

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import GowinPlatform
from amaranth_boards.orangecrab_r0_2 import OrangeCrabR0_2_25FPlatform
from amaranth_boards.resources import LEDResources, UARTResource

__all__ = ["OrangeCrabPlatform", "TangNano20kPlatform"]

_CMOS = {"IO_TYPE": "LVCMOS33"}


class OrangeCrabPlatform(OrangeCrabR0_2_25FPlatform):
    """With a serial port at the pins 0 and 1 of its header, and its green light as LED 0."""

    resources = (
        *OrangeCrabR0_2_25FPlatform.resources,
        UARTResource(0, rx="0", tx="1", conn=("io", 0), attrs=Attrs(**_CMOS)),
        *LEDResources(pins="M3", invert=True, attrs=Attrs(**_CMOS)),
    )


class TangNano20kPlatform(GowinPlatform):
    """Pins of Sipeed's schematic; the serial port goes to the board's USB bridge."""

    part = "GW2AR-LV18QN88C8/I7"
    family = "GW2AR-18C"
    default_clk = "clk27"
    resources = (
        Resource("clk27", 0, Pins("4", dir="i"), Clock(27e6), Attrs(**_CMOS)),
        *LEDResources(pins="15 16 17 18 19 20", invert=True, attrs=Attrs(**_CMOS)),
        UARTResource(0, rx="70", tx="69", attrs=Attrs(PULL_MODE="UP", **_CMOS)),
    )
    connectors = ()
