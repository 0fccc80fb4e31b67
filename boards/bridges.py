"""USB bridges of boards: the rates of the serial line, and how long they hold back an answer.

Every fact has its source. The host tries the rates, highest first, and verifies each with data. So
a wrong entry costs a moment, but never a wrong answer.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BL616", "BL702", "DAPLINK", "FT231X", "FT2232H", "Bridge"]

MAX_RATES = 16


@dataclass(frozen=True, kw_only=True)
class Bridge:
    """A chip between USB and the serial line.

    `rates` are in baud, highest first. A bridge holds back a short answer until its latency timer
    ends: after `latency` seconds if the driver was set to low latency, after `latency_default` if
    the system does not allow that. `source` names where these facts are from.
    """

    name: str
    rates: tuple[int, ...]
    latency: float = 0.001
    latency_default: float = 0.016
    source: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.source, str):
            raise ValueError("name and source of a bridge must be strings")
        rates = self.rates
        whole = isinstance(rates, tuple) and all(type(rate) is int and rate > 0 for rate in rates)
        if not whole or list(rates) != sorted(set(rates), reverse=True) or len(rates) > MAX_RATES:
            raise ValueError(
                f"rates of a bridge must be a tuple of at most {MAX_RATES} positive integers, "
                f"highest first, not {rates!r}"
            )
        for name in ("latency", "latency_default"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < 1:
                raise ValueError(f"{name} of a bridge must be 0 to 1 seconds, not {value!r}")


FT2232H = Bridge(
    name="FT2232H",
    rates=(6_000_000, 4_000_000, 3_000_000, 2_000_000, 1_000_000),
    source="FTDI's datasheet has 12 Mbaud, of 120 MHz over 10 and a divisor in eighths; 8 Mbaud is "
    "not reliable, 6 Mbaud is (https://github.com/eblot/pyftdi/issues/153). Latency timer: 16 ms, "
    "1 ms with ASYNC_LOW_LATENCY (Linux, drivers/usb/serial/ftdi_sio.c)",
)
FT231X = Bridge(
    name="FT231X",
    rates=(3_000_000, 2_000_000, 1_500_000, 1_000_000),
    source="FTDI's datasheet: 300 baud to 3 Mbaud; 3 MHz over 1, 1.5, 2 and then eighths. Latency "
    "timer: as of an FT2232H",
)
BL702 = Bridge(
    name="BL702",
    rates=(3_000_000, 2_000_000, 1_000_000),
    source="3 Mbaud: https://github.com/sipeed/TangNano-9K-example/issues/7. It stands in for an "
    "FT2232, with its driver and its latency timer",
)
BL616 = Bridge(
    name="BL616",
    rates=(2_000_000, 1_000_000, 500_000),
    source="2 Mbaud on the same bridge of the Tang Primer 25K's dock: "
    "https://github.com/ArthurHeymans/NORbert; no source has more. It stands in for an FT2232, "
    "with its driver and its latency timer",
)
DAPLINK = Bridge(
    name="DAPLink",
    rates=(230_400, 115_200),
    latency_default=0.001,
    source="230,400 baud works and 460,800 does not: "
    "https://github.com/makerdiary/pitaya-link/issues/2. It is a CDC device at full speed: a frame "
    "of 1 ms, and no timer",
)
