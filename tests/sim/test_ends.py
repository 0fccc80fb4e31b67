"""Ends of testbenches without a simulator: what they drive, take and refuse."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.lib import stream

from lbq_hw.sim.ends import Driver, Monitor


class Pins:
    """What was driven last, by the signal."""

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}

    def set(self, signal: Any, value: Any) -> None:
        self.values[id(signal)] = value


def test_a_driver_offers_a_payload_until_it_is_taken() -> None:
    port, pins = stream.Signature(8).create(), Pins()
    driver = Driver(port, [5, 6], lambda: False)
    seen = []
    for cycle, ready in enumerate((0, 0, 1, 1, 1)):
        driver.set(pins)
        seen.append(pins.values[id(port.payload)] if pins.values[id(port.valid)] else None)
        driver.see(cycle, ready)
    assert seen == [5, 5, 5, 6, None]
    assert driver.cycles == [2, 3]
    assert driver.done


@pytest.mark.parametrize(("valid", "payload"), [(0, 5), (1, 6)])
def test_an_offer_that_is_changed_or_withdrawn_before_it_is_taken_is_told(
    valid: int, payload: int
) -> None:
    told: list[int] = []
    stalls = iter([True, True, False, True])
    port = stream.Signature(8).create()
    monitor = Monitor(port, None, lambda: next(stalls), told.append)
    for cycle in range(3):
        monitor.set(Pins())
        monitor.see(cycle, 1, 5)
    assert monitor.payloads == told == [5]
    monitor.set(Pins())
    monitor.see(3, 1, 5)
    with pytest.raises(AssertionError, match=r"^an offer was changed or withdrawn"):
        monitor.see(4, valid, payload)
