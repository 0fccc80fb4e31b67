"""A line that damages frames, for everything that is simulated behind a noisy line."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from lbq_hw.host.line import LinkError, Port, SerialTransport
from lbq_hw.isa import link
from lbq_hw.sim.in_step import PassedOn

_FLAG = bytes((link.FLAG,))


class BadLine(PassedOn):
    """A serial port that damages frames in both directions, each with the probability `rate`.

    `damaged` counts the damaged frames by the kind of damage.
    """

    def __init__(self, port: Port, *, seed: int) -> None:
        super().__init__(port)
        self.rate = 0.0
        self.damaged: Counter[str] = Counter()
        source = random.Random(seed)
        self._there, self._back = _Way(self, source), _Way(self, source)
        self._coming = b""  # the begin of an answer
        self._given = b""

    @property
    def in_waiting(self) -> int:
        return len(self._given) + self._port.in_waiting

    def write(self, data: bytes, /) -> int:
        *frames, rest = data.split(_FLAG)
        self._port.write(b"".join(map(self._there.passed, frames)) + rest)
        return len(data)

    def read(self, size: int = 1, /) -> bytes:
        if not self._given:
            *frames, self._coming = (self._coming + self._port.read(4096)).split(_FLAG)
            self._given = b"".join(map(self._back.passed, frames))
        data, self._given = self._given[:size], self._given[size:]
        return data


def recovers(host: SerialTransport, line: BadLine, baud: int) -> bool:
    """Whether the core takes a new session when the line is good again."""
    line.rate = 0.0
    try:
        host.begin_again(baud)
    except LinkError:
        return False
    return True


class _Way:
    """One direction of a bad line."""

    def __init__(self, line: BadLine, source: random.Random) -> None:
        self._line, self._source = line, source
        self._late = b""  # a frame that comes after the next one

    def passed(self, body: bytes) -> bytes:
        """The output of the line for a frame; `body` is the frame without its flag."""
        if self._late and body:
            late, self._late = self._late, b""
            return body + _FLAG + late
        if not body or self._source.random() >= self._line.rate:
            return body + _FLAG
        kind = self._source.choice(KINDS)
        self._line.damaged[kind] += 1
        if kind in _DAMAGES:
            return _DAMAGES[kind](body, self._source)
        self._late = body + _FLAG
        return b""


def _flipped(body: bytes, source: random.Random) -> bytes:
    """Flips one to four bits."""
    out = bytearray(body)
    for _ in range(source.randint(1, 4)):
        out[source.randrange(len(out))] ^= 1 << source.randrange(8)
    return bytes(out) + _FLAG


def _cut(body: bytes, source: random.Random) -> bytes:
    """Cuts off the end of a frame, sometimes with its flag."""
    return body[: source.randrange(len(body))] + _FLAG * source.randint(0, 1)


def _babble(body: bytes, source: random.Random) -> bytes:
    """Inserts random bytes before a frame, in its middle or after it."""
    place = source.randrange(len(body) + 2)
    frame = body + _FLAG
    return frame[:place] + source.randbytes(source.randint(1, 12)) + frame[place:]


_DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flipped": _flipped,
    "cut": _cut,
    "babble": _babble,
    "lost": lambda _body, _source: b"",
    "repeated": lambda body, source: (body + _FLAG) * source.randint(2, 3),
}
"""Damages of one frame."""
KINDS = (*_DAMAGES, "reordered")
"""All kinds of damage: a reordered frame comes after the next one of its direction."""
