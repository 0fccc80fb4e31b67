"""The serial line to a core: a transport that repeats lost requests."""

from __future__ import annotations

import contextlib
import errno
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol

import serial

from lbq_hw.host import clock, latency
from lbq_hw.host.clock import Clock
from lbq_hw.host.frames import Replies, Reply, Request, cuts
from lbq_hw.host.transport import DeviceError
from lbq_hw.isa import link, regions
from lbq_hw.isa.link import Command, Status
from lbq_hw.isa.record import SLICE

ATTEMPTS = 6
QUICK = 0.25  # seconds to wait for an answer while trying a rate that may not work
GREETINGS = 2  # attempts to begin a session before the core is brought back to its first rate
WINDOW = 8
HALF = 128  # sequence numbers that can be told apart from those of earlier requests
STREAM = 96  # requests of a stream in flight, below `HALF`
SHORT = 16  # words: a shorter frame could be complete before the previous one is answered
SLOW = 2400  # baud: a zero byte at this rate is a break for a core at any higher rate
PAUSE = 0.05  # seconds after which this zero byte has been sent, whatever the bridge
BABBLE = 1 << 14  # bytes: more than all answers that can be in flight


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request of a `stream`, sent when a number of earlier reads have been answered, and preceded
    by `idle` bytes. Without these bytes it could be complete before the core has finished the
    previous request, and would be dropped.
    """

    request: Request
    needs: int = 0
    idle: int = 0

    def numbered(self, sequence: int) -> Asked:
        """The same with a sequence number."""
        return replace(self, request=replace(self.request, sequence=sequence))

    def encode(self) -> bytes:
        """The bytes on the wire."""
        return bytes((link.FLAG,)) * self.idle + self.request.encode()


class LinkError(DeviceError):
    """The port is gone, or the core does not answer; one sentence."""


class SilenceError(LinkError):
    """No answer came."""


class Port(Protocol):
    """The part of `serial.Serial` that is used here."""

    def read(self, size: int = 1, /) -> bytes: ...
    def write(self, data: bytes, /) -> int | None: ...
    def close(self) -> None: ...
    @property
    def in_waiting(self) -> int: ...
    @property
    def baudrate(self) -> int: ...
    @baudrate.setter
    def baudrate(self, value: int, /) -> None: ...


class SerialTransport:
    """Reads and writes a core's addresses through a serial port.

    A request without an answer is repeated; after `ATTEMPTS` a `LinkError` is raised. The core
    executes each request once and in order, however often it is repeated. Writes are sent without
    waiting for each answer; all of them have been answered when `write` returns.

    A session begins at the port's current rate, which is the core's rate after a reset. If the core
    does not answer, an earlier host may have left it at another rate, and a break brings it back.
    The break is a zero byte at the rate `SLOW`. The port's own break is not used, because some USB
    bridges react to it with a reset of the board or other settings, and a pseudo-terminal has none.
    If a rate `first` is given, the core is first asked once at that rate; if it answers, the
    session uses that rate.

    Parameters: `timeout`, seconds without an answer until a request is repeated; longer after each
    repeat. `clock` gives these seconds: real seconds, or the seconds of a simulated board, which
    may be arbitrarily slow (see `lbq_hw.host.clock`). `sequence` is the number before the first
    request's; by default it is random, so that frames for an earlier host are not accepted.
    """

    def __init__(
        self,
        port: Port,
        *,
        timeout: float = 1.0,
        clock: Clock = time.monotonic,
        first: int | None = None,
        sequence: int | None = None,
    ) -> None:
        self._port = port
        self._timeout = timeout
        self._attempts = ATTEMPTS
        self._clock = clock
        self._replies = Replies()
        self._pending: list[Reply] = []
        self._sequence = secrets.randbelow(256) if sequence is None else sequence
        self.repeats = 0
        if first is None or not self._answers_at(first):
            self._begin()

    @classmethod
    def open(
        cls, name: str, *, baud: int, timeout: float = 1.0, first: int | None = None
    ) -> SerialTransport:
        """Open a port by its name, 8N1 without flow control, at the rate of the core's reset."""
        try:
            port = serial.Serial(name, baud, timeout=0.02, write_timeout=5, exclusive=True)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.EWOULDBLOCK:
                raise LinkError(
                    f"the port {name} is in use by another program: end that program first"
                ) from error
            raise LinkError(f"the port {name} cannot be opened: {error}") from error
        try:
            told = clock.of_simulation(port)
            if told is not None:
                port.write_timeout = None  # a simulation may read slowly on a busy machine
            latency.lower(port, name)
            return cls(port, timeout=timeout, clock=told or time.monotonic, first=first)
        except BaseException:
            port.close()
            raise

    def __enter__(self) -> SerialTransport:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the port."""
        self._port.close()

    def now(self) -> float:
        """Seconds by the line's clock, since some start."""
        try:
            return self._clock()
        except OSError as error:
            raise LinkError(f"the port is gone ({error})") from error

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write consecutive addresses; all have been written when this returns."""
        self._exchange(
            [
                Request(
                    sequence=self._next(),
                    command=Command.WRITE,
                    address=address + first,
                    data=tuple(words[first : first + count]),
                )
                for first, count in cuts(address, len(words))
            ]
        )

    def read(self, address: int, count: int) -> list[int]:
        """Read consecutive addresses."""
        words: list[int] = []
        for first, size in cuts(address, count):
            request = Request(
                sequence=self._next(), command=Command.READ, address=address + first, words=size
            )
            words += self._exchange([request])[-1].data
        return words

    def stream(
        self, asked: Iterable[Asked], *, longest: float = 0.0
    ) -> Iterator[tuple[int, ...] | None]:
        """Send requests without waiting for each answer; returns the data of the reads, None for a
        lost one.

        The core may take `longest` seconds for a request. Refusals are handled as in `_exchange`.
        """
        source = iter(asked)
        following = next(source, None)
        flight: list[Asked] = []
        given, failures, refused = 0, 0, False
        while flight or following is not None:
            while (
                following is not None
                and following.needs <= given
                and len(flight) < STREAM
                and not refused
            ):
                flight.append(following.numbered(self._next()))
                self._send(flight[-1].encode())
                following = next(source, None)
            patience = longest + self._timeout * min(failures + 1, 3)
            first = flight[0].request.sequence
            reply = self._receive(first, len(flight), patience)
            ahead = 0 if reply is None else (reply.sequence - first) % 256
            good = reply is not None and reply.status == Status.OK
            if reply is not None and good and _fits(reply, flight[ahead].request):
                failures, refused = 0, False
                answered, flight = flight[: ahead + 1], flight[ahead + 1 :]
                for one in answered:
                    if one.request.command == Command.READ:
                        given += 1
                        yield reply.data if one is answered[-1] else None
                continue
            refused = reply is not None and ahead < len(flight) - 1
            if refused:
                continue
            failures += 1
            if failures == self._attempts:
                raise _silence(failures)
            self.repeats += len(flight)
            self._drain()
            self._send(bytes((link.FLAG,)))
            for one in flight:
                self._send(one.encode())

    def wait(self, limit: int) -> bool:
        """Wait until the core is idle, for `limit` cycles of its own counter at most."""
        first, last = (regions.REGISTERS[name].address for name in ("status", "cycles_high"))
        while True:
            status, *_, low, high = self.read(first, last - first + 1)
            if not status & 1:
                return True
            if high << SLICE | low >= limit:
                return False

    def baked(self) -> int:
        """`regions.tag` of the bitstream's program if it is still intact; else 0."""
        return self.read(link.BAKED, 1)[0]

    @property
    def baud(self) -> int:
        """The rate of the port."""
        return self._port.baudrate

    @property
    def simulated(self) -> bool:
        """Whether the board is simulated."""
        return self._clock is not time.monotonic

    @contextlib.contextmanager
    def hurried(self) -> Iterator[None]:
        """Context in which a request is sent once, and its answer must come in `QUICK` seconds."""
        kept = self._timeout, self._attempts
        self._timeout, self._attempts = min(self._timeout, QUICK), 1
        try:
            yield
        finally:
            self._timeout, self._attempts = kept

    def sync(self) -> None:
        """Restart the sequence numbers, after giving up requests that the core may have missed."""
        self._drain()
        self._send(bytes((link.FLAG,)))
        self._exchange([Request(sequence=self._next(), command=Command.SYNC)])

    def begin_again(self, baud: int) -> None:
        """Begin a new session at the core's rate after a reset, after a session that failed."""
        kept = self._timeout
        self._set_port(baud)
        self._timeout = min(self._timeout, QUICK)
        try:
            self._drain()
            self._begin()
        finally:
            self._timeout = kept

    def set_rate(self, baud: int, *, clock_hz: int) -> None:
        """Change the rate of both ends; ValueError if the core's clock does not allow the rate."""
        divisor = link.divisor(clock_hz=clock_hz, baud=baud)
        request = Request(sequence=self._next(), command=Command.DIVISOR, address=divisor)
        self._exchange([request])
        self._set_port(baud)

    def _answers_at(self, baud: int) -> bool:
        """Begin a session at another rate; without an answer, restore the port's old rate."""
        rate = self._port.baudrate
        with contextlib.suppress(SilenceError, ValueError), self.hurried():  # no such rate, or core
            self._set_port(baud)
            self._greet()
            return True
        self._set_port(rate)
        self._replies = Replies()
        return False

    def _begin(self) -> None:
        """Begin a session, with a break first if necessary."""
        try:
            self._greet(GREETINGS)
        except SilenceError:
            self._break()
            self._greet()

    def _greet(self, attempts: int | None = None) -> None:
        """Restart the sequence numbers, twice, with numbers that are half of all numbers apart.
        Late answers to an earlier host have fewer consecutive numbers, so at most one of the two
        answers can be such an answer.
        """
        self._send(bytes((link.FLAG,)))  # ends a frame that an earlier host may have begun
        for _ in range(2):
            self._sequence = (self._sequence + HALF) % 256
            sync = Request(sequence=self._sequence, command=Command.SYNC)
            self._exchange([sync], attempts=attempts)

    def _break(self) -> None:
        """Hold the line low for longer than a byte."""
        rate = self._port.baudrate
        with contextlib.suppress(ValueError):  # the port does not have that rate
            self._set_port(SLOW)
            self._send(bytes(1))
            until = self.now() + PAUSE
            while self.now() < until:
                self._read()
        self._set_port(rate)
        self._send(bytes((link.FLAG,)))  # ends the frame that the zero may have begun

    def _next(self) -> int:
        self._sequence = (self._sequence + 1) % 256
        return self._sequence

    def _exchange(self, requests: Sequence[Request], attempts: int | None = None) -> list[Reply]:
        """Send requests with consecutive numbers until all are answered; returns the answers.

        An answer also confirms all earlier requests, because the core accepts requests only in
        order. The same holds for the answer to a repeated request that the core executed last. In
        that case the core refuses the requests repeated before it, which is ignored unless it
        refuses the last request, too.
        """
        attempts = attempts or self._attempts
        done, sent, failures = 0, 0, 0
        answers: list[Reply] = []
        while done < len(requests):
            most = min(len(requests), done + WINDOW)
            while sent < most and (sent == done or len(requests[sent].data) >= SHORT):
                self._send(requests[sent].encode())
                sent += 1
            patience = self._timeout * min(failures + 1, 3)
            reply = self._receive(requests[done].sequence, sent - done, patience)
            if reply is not None:
                ahead = (reply.sequence - requests[done].sequence) % 256
                if reply.status == Status.OK and _fits(reply, requests[done + ahead]):
                    done += ahead + 1
                    failures = 0
                    answers.append(reply)
                    continue
                if ahead < sent - done - 1:
                    continue
            failures += 1
            if failures == attempts and reply is None:
                raise _silence(attempts)
            if failures == attempts:
                raise LinkError("the core was reset, or another host uses it: start again")
            self.repeats += sent - done
            self._drain()
            self._send(bytes((link.FLAG,)))  # ends a frame that was cut off
            sent = done
        return answers

    def _receive(self, first: int, count: int, seconds: float) -> Reply | None:
        """The next reply to one of `count` requests from `first` on; None if no reply comes."""
        deadline, babble = self.now() + seconds, 0
        while True:
            while self._pending:
                reply = self._pending.pop(0)
                if (reply.sequence - first) % 256 < count:
                    return reply
            # Ask for the time first: bytes that came before it are read, however long that takes.
            late = self.now() > deadline
            data = self._read()
            self._pending += self._replies.feed(data)
            babble += len(data) if late else 0
            if late and not self._pending and (not data or babble > BABBLE):
                return None

    def _drain(self) -> None:
        """Read and drop late answers until the line is silent."""
        quiet = self.now() + self._timeout / 4
        deadline = self.now() + 4 * self._timeout
        while (now := self.now()) < deadline:
            if self._read():
                quiet = now + self._timeout / 4
            elif now >= quiet:
                break
        self._replies = Replies()
        self._pending.clear()

    def _set_port(self, baud: int) -> None:
        try:
            self._port.baudrate = baud
        except OSError as error:
            raise LinkError(f"the port is gone ({error})") from error

    def _read(self) -> bytes:
        try:
            return self._port.read(max(1, self._port.in_waiting))
        except (OSError, TypeError) as error:  # pyserial raises either if the port went away
            raise LinkError(f"the port is gone ({error})") from error

    def _send(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except OSError as error:
            raise LinkError(f"the port is gone ({error})") from error


def _silence(attempts: int) -> SilenceError:
    return SilenceError(
        f"the core does not answer ({attempts} attempts): check that the board is powered and has "
        "its bitstream, and that port and baud are right"
    )


def _fits(reply: Reply, request: Request) -> bool:
    return len(reply.data) == (request.words if request.command == Command.READ else 0)
