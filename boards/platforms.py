"""Platforms that amaranth-boards lacks, or that it has without some of the pins."""

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import GowinPlatform, LatticeECP5Platform
from amaranth_boards.ecpix5 import ECPIX545Platform, ECPIX585Platform
from amaranth_boards.icesugar_pro import ICESugarProPlatform
from amaranth_boards.orangecrab_r0_2 import OrangeCrabR0_2_25FPlatform
from amaranth_boards.resources import LEDResources, SDRAMResource, UARTResource
from amaranth_boards.tang_nano_9k import TangNano9kPlatform
from amaranth_boards.ulx3s import (
    ULX3S_12F_Platform,
    ULX3S_25F_Platform,
    ULX3S_45F_Platform,
    ULX3S_85F_Platform,
)

__all__ = [
    "ColorlightI5Platform", "ColorlightI9Platform", "ECPIX545BoardPlatform",
    "ECPIX585BoardPlatform", "ICESugarProBoardPlatform", "OrangeCrabPlatform",
    "TangNano9kBoardPlatform", "TangNano20kPlatform", "ULX3S12FBoardPlatform",
    "ULX3S25FBoardPlatform", "ULX3S45FBoardPlatform", "ULX3S85FBoardPlatform",
]  # fmt: skip

_CMOS = {"IO_TYPE": "LVCMOS33"}
_LINK = {"PULLMODE": "UP", **_CMOS}  # an open line rests high


def _colorlight(led):
    """Pins of both modules, as https://github.com/wuxx/Colorlight-FPGA-Projects lists them; the
    serial port is the one that MuseLab's extension board has on its USB socket. Clock enable, chip
    select and masks of the SDRAM are fixed on the module.
    """
    return (
        Resource("clk25", 0, Pins("P3", dir="i"), Clock(25e6), Attrs(**_CMOS)),
        *LEDResources(pins=led, invert=True, attrs=Attrs(**_CMOS)),
        UARTResource(0, rx="H18", tx="J17", attrs=Attrs(**_LINK)),
        SDRAMResource(
            0,
            clk="B9",
            ras_n="B10",
            cas_n="A9",
            we_n="A10",
            ba="B11 C8",
            a="B13 C14 A16 A17 B16 B15 A14 A13 A12 A11 B12",
            dq="B6 A5 A6 A7 C7 B8 B5 A8 D8 D7 E8 D6 C6 D5 E7 C5 "
            "C10 D9 E11 D11 C11 D12 E9 C12 E14 C15 E13 D15 E12 B17 D14 D13",
            attrs=Attrs(SLEWRATE="FAST", **_CMOS),
        ),
    )


class ColorlightI5Platform(LatticeECP5Platform):
    """Colorlight i5, revision 7.0."""

    device = "LFE5U-25F"
    package = "BG381"
    speed = "6"
    default_clk = "clk25"
    resources = _colorlight(led="U16")
    connectors = ()


class ColorlightI9Platform(ColorlightI5Platform):
    """Colorlight i9, revision 7.2: as the i5, but for the chip and the light."""

    device = "LFE5U-45F"
    resources = _colorlight(led="L2")


_ECPIX_GREEN = LEDResources(pins="R21", invert=True, attrs=Attrs(**_CMOS))


class ECPIX545BoardPlatform(ECPIX545Platform):
    """With the green of its first light as LED 0."""

    resources = (*ECPIX545Platform.resources, *_ECPIX_GREEN)


class ECPIX585BoardPlatform(ECPIX585Platform):
    """The same with the larger chip."""

    resources = (*ECPIX585Platform.resources, *_ECPIX_GREEN)


class ICESugarProBoardPlatform(ICESugarProPlatform):
    """The platform of amaranth-boards, with the green LED as LED 0. LiteX has red, green and blue
    at B11, A11 and A12, active low, and MuseLab's own files have the same order.
    """

    resources = (
        *ICESugarProPlatform.resources,
        *LEDResources(pins="A11", invert=True, attrs=Attrs(**_CMOS)),
    )


class OrangeCrabPlatform(OrangeCrabR0_2_25FPlatform):
    """With a serial port at the pins 0 and 1 of its header, and its green light as LED 0."""

    resources = (
        *OrangeCrabR0_2_25FPlatform.resources,
        UARTResource(0, rx="0", tx="1", conn=("io", 0), attrs=Attrs(**_LINK)),
        *LEDResources(pins="M3", invert=True, attrs=Attrs(**_CMOS)),
    )


class TangNano9kBoardPlatform(TangNano9kPlatform):
    """With the lights at 1.8 V, the supply of their bank."""

    resources = (
        *(resource for resource in TangNano9kPlatform.resources if resource.name != "led"),
        *LEDResources(pins="10 11 13 14 15 16", invert=True, attrs=Attrs(IO_TYPE="LVCMOS18")),
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


def _ulx3s(resources):
    """The platform with a pull-up on the serial line, and with the ESP32's pin GPIO0 as wifi_gpio0.
    If GPIO0 is low for some seconds, the ESP32's usual firmware takes over the FPGA by JTAG. So the
    design must drive it: unused pads of an ECP5 pull down.
    """
    return (
        *(resource for resource in resources if resource.name != "uart"),
        UARTResource(0, rx="M1", tx="L4", attrs=Attrs(**_LINK)),
        Resource("wifi_gpio0", 0, Pins("L2", dir="o"), Attrs(**_CMOS)),
    )


class ULX3S12FBoardPlatform(ULX3S_12F_Platform):
    resources = _ulx3s(ULX3S_12F_Platform.resources)


class ULX3S25FBoardPlatform(ULX3S_25F_Platform):
    resources = _ulx3s(ULX3S_25F_Platform.resources)


class ULX3S45FBoardPlatform(ULX3S_45F_Platform):
    resources = _ulx3s(ULX3S_45F_Platform.resources)


class ULX3S85FBoardPlatform(ULX3S_85F_Platform):
    resources = _ulx3s(ULX3S_85F_Platform.resources)
