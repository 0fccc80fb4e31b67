from __future__ import annotations

from pathlib import Path

import pytest

from lbq_hw.host.latency import lower, milliseconds


class Plain:
    """A port without such a setting, as on Windows."""


class Setting:
    """As pyserial's on POSIX systems; `refusal` is what it raises."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.refusal = refusal
        self.set: list[bool] = []

    def set_low_latency_mode(self, value: bool) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.set.append(value)


def timer(folder: Path, text: str) -> Path:
    made = folder / "ttyUSB1" / "latency_timer"
    made.parent.mkdir()
    made.write_text(text, "utf-8")
    return made


def test_the_port_is_asked_first(tmp_path: Path) -> None:
    port = Setting()
    lower(port, "/dev/ttyUSB1", tmp_path)
    assert port.set == [True]


@pytest.mark.parametrize("refusal", [ValueError("no"), NotImplementedError(), OSError(1, "no")])
def test_where_the_port_refuses_the_timer_is_set(tmp_path: Path, refusal: Exception) -> None:
    made = timer(tmp_path, "16\n")
    lower(Setting(refusal), "/dev/ttyUSB1", tmp_path)
    assert made.read_text("utf-8") == "1\n"
    assert milliseconds("/dev/ttyUSB1", tmp_path) == 1


def test_a_timer_that_is_short_is_left_alone(tmp_path: Path) -> None:
    made = timer(tmp_path, "1\n")
    lower(Plain(), "/dev/ttyUSB1", tmp_path)
    assert made.read_text("utf-8") == "1\n"


def test_a_system_that_shows_no_timer_or_another_thing_is_no_error(tmp_path: Path) -> None:
    lower(Plain(), "/dev/ttyUSB1", tmp_path)
    assert milliseconds("/dev/ttyUSB1", tmp_path) is None
    timer(tmp_path, "soon")
    lower(Plain(), "/dev/ttyUSB1", tmp_path)
    assert milliseconds("/dev/ttyUSB1", tmp_path) is None
    (tmp_path / "ttyUSB2" / "latency_timer").mkdir(parents=True)
    lower(Plain(), "/dev/ttyUSB2", tmp_path)
