"""Checks of a user's board, before a build: these mistakes would otherwise be found after minutes,
or never.

Every mistake is a `BoardError` of one sentence. The checks compare the fields with the platform
(device, options of nextpnr, clock, resources), the clocks with the PLL and the link, the pins with
each other and with the package, and the SDRAM's pins with its chip.
"""

from __future__ import annotations

from typing import Any

from lbq_hw import families
from lbq_hw.boards import Board, BoardError, clocks, pins
from lbq_hw.isa.link import divisor

__all__ = ["check"]


def check(board: Board) -> None:
    """Raise BoardError, in one sentence, for the first mistake."""
    _ = board.chip
    if board.family is None:
        return
    platform = board.make_platform()
    _device(board, platform)
    _clock(board, platform)
    pins.check(board)
    _memory(board)
    _package(board, platform)


def _device(board: Board, platform: Any) -> None:
    """Check that the device and nextpnr's options match the platform."""
    try:
        device, options = families.of(board).named(platform)
    except (KeyError, AttributeError) as error:
        raise BoardError(
            f"platform {board.platform!r} must have a device and a package that Amaranth knows, "
            f"and it does not know {error}"
        ) from error
    if not board.device.upper().startswith(device.upper()):
        raise BoardError(f"device must begin with {device}, its platform's, not {board.device!r}")
    given = " ".join(board.place)
    if not f" {given} ".upper().startswith(f" {options} ".upper()):
        raise BoardError(f"place must begin with the words of {options!r}, not be {given!r}")
    families.of(board).check_place(given)


def _clock(board: Board, platform: Any) -> None:
    """Check that the family has the PLL, its input is the platform's clock, and its output serves
    the link.
    """
    known = families.of(board).plls
    if board.pll not in known:
        raise BoardError(
            f"pll must be one of {', '.join(known)} for the family {board.family}, "
            f"not {board.pll!r}"
        )
    pins.pins(board, "clock")
    clock = platform.lookup(board.clock).clock
    if clock is not None and round(clock.frequency) != board.clock_hz:
        raise BoardError(
            f"clock_hz must be {round(clock.frequency):_}, the frequency of {board.clock} in its "
            f"platform, not {board.clock_hz:_}"
        )
    setting = clocks.solve(board.pll, board.clock_hz, board.target_hz)
    divisor(clock_hz=board.clock_hz if setting is None else setting.output_hz, baud=board.baud)


def _memory(board: Board) -> None:
    """Check that the SDRAM's resource has the pins of its chip."""
    chip = board.chip
    if chip is None:
        return
    widths = pins.widths(board, "sdram")
    wanted = {
        "clk": 1,
        "ras": 1,
        "cas": 1,
        "we": 1,
        "ba": chip.bank_bits,
        "a": chip.pin_bits,
        "dq": chip.data_bits,
    }
    for name, width in wanted.items():
        found = widths.get(name, 0)
        if found < width or (found > width and name != "a"):
            raise BoardError(
                f"sdram must have {width} pins {name} for the chip {chip.name}, not {found}"
            )


def _package(board: Board, platform: Any) -> None:
    """Check that the package has every pin."""
    family = families.of(board)
    known = family.pins(board, platform)
    if known is None:
        return
    if not known:
        raise BoardError(f"the tools do not know the device of place {' '.join(board.place)!r}")
    for pin, signal in pins.all_pins(board).items():
        if pin not in known and not family.is_pad(pin):
            raise BoardError(f"{signal} is on pin {pin}, which {board.device} does not have")
