"""A line that damages frames, in front of a port that returns what it is sent."""

from __future__ import annotations

import pytest

from lbq_hw.sim import noise_line
from lbq_hw.sim.noise_line import KINDS, BadLine

FRAMES = [bytes((number,)) * 5 + b"~" for number in range(1, 5)]


class Loop:
    """A port whose answers are its requests."""

    baudrate = 9600

    def __init__(self) -> None:
        self.data = b""

    @property
    def in_waiting(self) -> int:
        return len(self.data)

    def write(self, data: bytes, /) -> int:
        self.data += data
        return len(data)

    def read(self, size: int = 1, /) -> bytes:
        data, self.data = self.data[:size], self.data[size:]
        return data

    def close(self) -> None:
        pass


def line(monkeypatch: pytest.MonkeyPatch, *kinds: str) -> BadLine:
    monkeypatch.setattr(noise_line, "KINDS", kinds)
    return BadLine(Loop(), seed=0)


def sent(bad: BadLine, frames: list[bytes], *, rate: float) -> bytes:
    """What comes out of the line, as it is damaged on the way to the port."""
    bad.rate = rate
    for frame in frames:
        assert bad.write(frame) == len(frame)
    bad.rate = 0.0
    return bad.read(4096)


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_line_changes_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = line(monkeypatch, kind)
    assert sent(bad, FRAMES, rate=0.0) == b"".join(FRAMES)
    assert not bad.damaged


def test_a_reordered_frame_comes_after_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = line(monkeypatch, "reordered")
    one, two, three, four = FRAMES
    assert sent(bad, [one, b"~", two, three], rate=1.0) == b"~" + two + one
    assert bad.damaged == {"reordered": 2}
    assert sent(bad, [four], rate=0.0) == four + three


def test_answers_are_reordered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = line(monkeypatch, "reordered")
    bad.write(FRAMES[0] + FRAMES[1])
    bad.rate = 1.0
    assert bad.read(100) == FRAMES[1] + FRAMES[0]


@pytest.mark.parametrize(("kind", "least", "most"), [("lost", 0, 0), ("repeated", 2, 3)])
def test_frames_are_lost_and_repeated(
    kind: str, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = line(monkeypatch, kind)
    out = sent(bad, FRAMES, rate=1.0)
    assert all(least <= out.count(frame) <= most for frame in FRAMES)
    assert len(out) == sum(len(frame) * out.count(frame) for frame in FRAMES)


@pytest.mark.parametrize("kind", ["flipped", "cut", "babble"])
def test_frames_are_changed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = line(monkeypatch, kind)
    out = sent(bad, FRAMES, rate=1.0)
    if kind == "flipped":
        assert len(out) == len(b"".join(FRAMES))
        assert not any(frame in out for frame in FRAMES)
    elif kind == "cut":
        assert not any(frame in out for frame in FRAMES)
    else:
        assert len(out) > len(b"".join(FRAMES))
    assert bad.damaged == {kind: len(FRAMES)}


def test_the_begin_of_a_frame_passes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = line(monkeypatch, "lost")
    assert sent(bad, [b"\1\2"], rate=1.0) == b""  # the port has it, and answers with whole frames
    assert bad.in_waiting == 0
    assert sent(bad, [b"\3~"], rate=0.0) == b"\1\2\3~"
