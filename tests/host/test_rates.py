"""Agreeing on a rate: what is tried in which order, what is verified, and what is remembered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import serial
from host.test_line import Bridge, Noise

from lbq_hw import package, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.host import line as lines
from lbq_hw.host import rates
from lbq_hw.host.line import LinkError, SilenceError
from lbq_hw.host.rates import opened, possible
from lbq_hw.host.remembered import Remembered
from lbq_hw.package import Package

CLOCK = 30_000_000
RESET = 1_000_000
RATES = (6_000_000, 4_000_000, 3_000_000, 2_000_000, 1_000_000)


class Core(Bridge):
    """A core that has the rate it was asked for, behind a bridge that can do `most`.

    Above that the bridge alters bytes, or takes no such rate where `refuses` is set.
    """

    RESET = RESET
    refuses = False

    def __init__(self, most: int = 12_000_000) -> None:
        super().__init__()
        self.most = most
        self.rates: list[int] = []

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "baudrate" and self.refuses and value > self.most:
            raise ValueError(f"Failed to set custom baud rate ({value})")
        super().__setattr__(name, value)

    def write(self, data: bytes) -> int:
        if data != b"\x7e" and (not self.rates or self.rates[-1] != self.baudrate):
            self.rates.append(self.baudrate)
        if self.baudrate > self.most:
            data = bytes(byte ^ 0x55 for byte in data)
        seen = len(self.model.accepted)
        told = self.rate == self.baudrate
        super().write(data)
        for body in self.model.accepted[seen:] if told else ():
            if body[1] >> 6 == 3:
                self.rate = CLOCK // int.from_bytes(body[2:6], "little")
        return len(data)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "QUICK", 0.002)
    monkeypatch.setattr(lines, "PAUSE", 0.0)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return package.write(
        tmp_path_factory.mktemp("rates") / "package", board="icebreaker",
        config=CoreConfig(lanes=8), model=zoo.find("digits"), clock_hz=CLOCK, baud=RESET,
        baked=False, bitstream=None, rates=RATES,
    )  # fmt: skip


@pytest.fixture
def memory(tmp_path: Path) -> Remembered:
    return Remembered(tmp_path / "cache" / "rates.json")


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Callable[[Core], Core]:
    def plugged(core: Core) -> Core:
        monkeypatch.setattr(serial, "Serial", lambda *_, **__: core)
        return core

    return plugged


def use(packed: Package, memory: Remembered, **options: Any) -> int:
    """A short session; its rate."""
    with opened(packed, "usb", timeout=0.002, memory=memory, **options) as line:
        assert line.read(5, 1) == [5]
        return line.baud


@pytest.mark.parametrize(
    ("clock_hz", "found"),
    [
        (30_000_000, [6_000_000, 3_000_000, 2_000_000, 1_000_000]),
        (33_000_000, [3_000_000, 1_000_000]),
        (80_000_000, [4_000_000, 3_000_000, 2_000_000, 1_000_000]),
        (12_000_000, [3_000_000, 2_000_000, 1_000_000]),
        (6_000_000, [1_000_000]),
    ],
)
def test_a_rate_is_possible_if_the_core_s_clock_can_be_divided_to_it(
    clock_hz: int, found: list[int]
) -> None:
    assert possible(RATES, clock_hz=clock_hz, baud=RESET) == found


def test_rates_below_the_reset_s_are_not_tried_and_a_package_may_know_none() -> None:
    assert possible((2_000_000, 115_200), clock_hz=CLOCK, baud=1_000_000) == [2_000_000, 1_000_000]
    assert possible((), clock_hz=CLOCK, baud=115_200) == [115_200]


def test_the_highest_rate_is_agreed_on_verified_and_remembered(
    packed: Package, memory: Remembered, plug: Any
) -> None:
    core = plug(Core())
    assert use(packed, memory) == 6_000_000
    assert core.rates == [RESET, 6_000_000]
    assert len(core.model.written) == rates.WORDS
    assert (core.rate, core.baudrate, core.closed) == (RESET, RESET, True)
    assert memory.get("icebreaker", "usb") == 6_000_000


@pytest.mark.parametrize("refuses", [False, True])
def test_a_rate_that_does_not_work_gives_way_to_the_next(
    packed: Package, memory: Remembered, plug: Any, refuses: bool
) -> None:
    core = Core(most=2_500_000)
    core.refuses = refuses
    plug(core)
    assert use(packed, memory) == 2_000_000
    assert (core.rate, core.breaks) == (RESET, 0)
    assert memory.get("icebreaker", "usb") == 2_000_000
    tried = [rate for rate in core.rates if rate not in (RESET, 2400)]
    assert tried == ([2_000_000] if refuses else [6_000_000, 3_000_000, 2_000_000])


def test_where_no_rate_works_the_package_s_remains(
    packed: Package, memory: Remembered, plug: Any
) -> None:
    plug(Core(most=RESET))
    assert use(packed, memory) == RESET
    assert memory.get("icebreaker", "usb") == RESET


def test_a_remembered_rate_is_asked_first_then_the_reset_s_and_a_break_comes_last(
    packed: Package, memory: Remembered, plug: Any
) -> None:
    memory.put("icebreaker", "usb", 3_000_000)
    core = plug(Core())
    assert use(packed, memory) == 3_000_000  # not higher: 6 Mbaud did not work then
    assert core.rates == [3_000_000, RESET, 3_000_000]
    core = plug(Core())
    core.rate = 3_000_000  # a host was killed
    assert use(packed, memory) == 3_000_000
    assert core.rates == [3_000_000]
    assert core.model.written == []
    core = plug(Core())
    core.rate = 1_050_000  # too near to the reset's for a zero at that rate to be a break
    assert use(packed, memory) == 3_000_000
    assert core.rates == [3_000_000, RESET, 2400, RESET, 3_000_000]


def test_another_board_port_or_clock_has_a_rate_of_its_own(
    packed: Package, memory: Remembered, plug: Any
) -> None:
    memory.put("icebreaker", "other", 2_000_000)
    memory.put("ulx3s-85f", "usb", 2_000_000)
    memory.put("icebreaker", "usb", 5_000_000)
    plug(Core())
    assert use(packed, memory) == 6_000_000


def test_repeated_frames_and_silence_lower_the_rate_for_the_next_session(
    packed: Package, memory: Remembered, plug: Any
) -> None:
    core = plug(Core())

    def spoil(noise: Noise) -> None:
        with opened(packed, "usb", timeout=0.002, memory=memory) as line:
            core.noise = noise
            line.read(5, 1)

    def gone(_: bytes) -> bytes:
        raise OSError("unplugged")

    with opened(packed, "usb", timeout=0.002, memory=memory) as line:
        line.repeats += 1
    assert memory.get("icebreaker", "usb") == 3_000_000
    with pytest.raises(SilenceError):
        spoil(lambda _: b"")
    assert memory.get("icebreaker", "usb") == 2_000_000
    core = plug(Core())
    with pytest.raises(LinkError, match=r"^the port is gone \(unplugged\)$"):
        spoil(gone)
    assert memory.get("icebreaker", "usb") == 2_000_000


def test_a_rate_that_is_asked_for_is_taken_and_not_remembered(
    packed: Package, memory: Remembered, plug: Any
) -> None:
    core = plug(Core())
    assert use(packed, memory, baud=2_000_000) == 2_000_000
    assert use(packed, memory, baud=RESET) == RESET
    assert core.model.written == []
    assert memory.get("icebreaker", "usb") is None


def test_a_package_without_rates_stays_at_its_own(
    memory: Remembered, plug: Any, tmp_path: Path
) -> None:
    old = package.write(
        tmp_path / "package", board="mine", config=CoreConfig(lanes=8), model=zoo.find("digits"),
        clock_hz=CLOCK, baud=RESET, baked=False, bitstream=None,
    )  # fmt: skip
    manifest = old.folder / "package.json"
    facts = json.loads(manifest.read_text("utf-8"))
    del facts["rates"]  # as earlier versions have written it
    manifest.write_text(json.dumps(facts), "utf-8")
    core = plug(Core())
    assert use(package.read(old.folder), memory) == RESET
    assert core.rates == [RESET]
    assert memory.get("mine", "usb") is None
