"""Platforms that amaranth-boards does not have, or not with a serial port."""

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import GowinPlatform
from amaranth_boards.icesugar_pro import ICESugarProPlatform
from amaranth_boards.orangecrab_r0_2 import OrangeCrabR0_2_25FPlatform
from amaranth_boards.resources import LEDResources, SDRAMResource, UARTResource

__all__ = ["ICESugarProBoardPlatform", "OrangeCrabPlatform", "TangNano20kPlatform"]

_CMOS = {"IO_TYPE": "LVCMOS33"}


class ICESugarProBoardPlatform(ICESugarProPlatform):
    """With its green light as LED 0."""

    resources = (
        *ICESugarProPlatform.resources,
        *LEDResources(pins="A12", attrs=Attrs(**_CMOS)),
    )


class OrangeCrabPlatform(OrangeCrabR0_2_25FPlatform):
    """With a serial port at the pins 0 and 1 of its header, and its green light as LED 0."""

    resources = (
        *OrangeCrabR0_2_25FPlatform.resources,
        UARTResource(0, rx="0", tx="1", conn=("io", 0), attrs=Attrs(**_CMOS)),
        *LEDResources(pins="M3", invert=True, attrs=Attrs(**_CMOS)),
    )


class TangNano20kPlatform(GowinPlatform):
    """Pins of Sipeed's schematic; the serial port goes to the board's USB bridge. Pads of the SDRAM
    in the package are those of Apicula's table of the GW2AR-18C in QN88.
    """

    part = "GW2AR-LV18QN88C8/I7"
    family = "GW2AR-18C"
    default_clk = "clk27"
    resources = (
        Resource("clk27", 0, Pins("4", dir="i"), Clock(27e6), Attrs(**_CMOS)),
        *LEDResources(pins="15 16 17 18 19 20", invert=True, attrs=Attrs(**_CMOS)),
        UARTResource(0, rx="70", tx="69", attrs=Attrs(PULL_MODE="UP", **_CMOS)),
        SDRAMResource(
            0,
            clk="IOR11B",
            cke="IOL13A",
            cs_n="IOL14B",
            ras_n="IOL13B",
            cas_n="IOL14A",
            we_n="IOL12B",
            ba="IOR13A IOR12A",
            a="IOR14A IOR13B IOR14B IOR15A IOL16B IOL17B IOL16A IOL17A IOL15B IOL15A IOR12B",
            dq="IOL3A IOL3B IOL8A IOL8B IOL9A IOL9B IOL11A IOL11B "
            "IOR9B IOR9A IOR5B IOR6A IOR5A IOR4B IOR3B IOR3A "
            "IOL39B IOL39A IOL35B IOL35A IOL30B IOL30A IOL20A IOL18B "
            "IOR17A IOR16A IOR16B IOR17B IOR18A IOR18B IOR44A IOR44B",
            dqm="IOL12A IOR11A IOL18A IOR15B",
            attrs=Attrs(**_CMOS),
        ),
    )
    connectors = ()
