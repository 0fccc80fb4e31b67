"""Link and UART behind a noisy line: every request is executed once and in order, or not at all.

The ordinary `SerialTransport` writes and reads random words at random addresses, while frames are
damaged in both directions. A `Ledger` behind the link logs every write. After each batch of
requests, the log is read on a good line: it must have the words that the host has sent, in their
order, at least all those of which the host was told that they are written, and nothing else.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from lbq_hw import units
from lbq_hw.commands.progress import image_bar
from lbq_hw.host.frames import REPLY_BYTES, REQUEST_BYTES, Request
from lbq_hw.host.line import Asked, LinkError, SerialTransport
from lbq_hw.isa import link
from lbq_hw.isa.link import Command
from lbq_hw.sim.board import BENCH
from lbq_hw.sim.in_step import PACKET, Stepped
from lbq_hw.sim.ledger import CELLS, COUNT, ENTRIES, LOG, USABLE, LinkWithLedger
from lbq_hw.sim.noise_line import BadLine, recovers
from lbq_hw.sim.small_boards import CLOCK_HZ
from lbq_hw.sim.verilator import CACHE, build_bench
from lbq_hw.sim.verilog import convert_large

TOP = "system"
BAUD = CLOCK_HZ // link.LEAST_DIVISOR
TIMEOUT = 0.02
"""Seconds without an answer until the host repeats requests: about two of the longest frames."""
LATENCY = 0.001  # seconds of the bridge, in which it collects the bytes of answers
SETTLE = 2500  # cycles in which the link checks the longest frame
CALLS = 8  # writes, reads and streams of a batch
STREAMS = 6  # as often as each of writes and reads: streams damage more frames per second
STREAMED = 48  # requests of a stream, at most
LONGEST = 120  # words of a write or a read: three frames at most
SHORT = 4  # words of a streamed request, at most
_ESCAPED = 0x7E7D187E  # four bytes that a request has escaped


def verilog() -> str:
    """The simulated design."""
    return convert_large(LinkWithLedger(), name=TOP)


def build(text: str | None = None, *, cache: Path = CACHE) -> Path:
    """Compile the simulation of a design, by default `verilog`."""
    return build_bench(verilog() if text is None else text, BENCH, top=TOP, cache=cache)


def stepped(program: Path) -> Stepped:
    """A running simulation of a program of `build`, as a serial port."""
    return Stepped(
        program,
        clock_hz=CLOCK_HZ,
        baud=BAUD,
        latency=LATENCY,
        packet=PACKET,
        wait=TIMEOUT,
        options=(f"+settle={SETTLE}",),
    )


@dataclass(kw_only=True)
class LinkNoise:
    """The result of a run on a bad line.

    `damaged` counts frames by the kind of damage; `reads` and `writes`, answered calls of the host;
    `words`, written words in the log; `wrong_reads`, answers with other data than were written;
    `wrong_writes`, words in the log that the host has not sent at this place, and words that are
    missing although the host was told that they are written; `refused`, errors after which the host
    gave up; `hangs`, cores that did not answer on a good line. `slowest` is the longest simulated
    time of a call, in seconds.
    """

    seed: int
    damaged: dict[str, int] = field(default_factory=dict)
    reads: int = 0
    writes: int = 0
    words: int = 0
    wrong_reads: int = 0
    wrong_writes: int = 0
    refused: int = 0
    hangs: int = 0
    slowest: float = 0.0

    @property
    def frames(self) -> int:
        return sum(self.damaged.values())

    @property
    def good(self) -> bool:
        return not self.wrong_reads and not self.wrong_writes and not self.hangs

    def facts(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self) | {"frames": self.frames}

    def spoken(self) -> str:
        """One line for people."""
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.damaged.items()))
        return (
            f"{self.frames:,} damaged frames ({kinds}): {self.words:,} words written, "
            f"{self.wrong_writes:,} wrong; {self.reads:,} reads, {self.wrong_reads:,} wrong; "
            f"{self.refused:,} errors, {self.hangs} hangs; the slowest call took "
            f"{units.seconds(self.slowest)}"
        )


def run(program: Path, *, frames: int, rate: float, seed: int) -> LinkNoise:
    """Call the core with a `program` of `build` until `frames` frames were damaged, or it hangs."""
    found = LinkNoise(seed=seed)
    with stepped(program) as port, image_bar() as bar:
        task = bar.add_task("damaged frames", total=frames)
        host = _Host(port, found)
        while found.frames < frames and not found.hangs:
            host.batch(rate)
            bar.update(task, completed=min(found.frames, frames))
    return found


class _Host:
    """Calls the core, and compares what comes back with what was sent."""

    def __init__(self, port: Stepped, found: LinkNoise) -> None:
        self._port, self._found = port, found
        self._line = BadLine(port, seed=found.seed)
        self._host = SerialTransport(self._line, timeout=TIMEOUT, clock=port.now, sequence=0)
        self._source = random.Random(found.seed)
        self._cells = [0] * CELLS  # once all words that were sent are written
        self._logged = 0  # writes until this batch
        self._sent: list[tuple[int, int]] = []  # words of this batch and their addresses
        self._told = 0  # how many of these are written, as the host was told

    def batch(self, rate: float) -> None:
        """Make random calls on a bad line; then compare the log on a good one."""
        found, cells = self._found, self._cells.copy()
        self._sent, self._told = [], 0
        self._line.rate = rate
        begun = self._port.now()
        try:
            for _ in range(CALLS):
                begun = self._port.now()
                self._source.choice((self._write, self._read, *STREAMS * (self._stream,)))()
                found.slowest = max(found.slowest, self._port.now() - begun)
        except LinkError:
            found.refused += 1
            found.hangs += not recovers(self._host, self._line, BAUD)
            found.slowest = max(found.slowest, self._port.now() - begun)
        self._line.rate = 0.0
        found.damaged = dict(self._line.damaged)
        try:
            self._compare(cells)
        except LinkError:
            found.hangs = 1
        self._cells = cells

    def _write(self) -> None:
        address, count = self._place(LONGEST)
        words = self._words(address, count)
        self._host.write(address, words)
        self._told = len(self._sent)
        self._found.writes += 1

    def _read(self) -> None:
        address, count = self._place(LONGEST)
        wanted = self._wanted(address, count)
        self._check(self._host.read(address, count), wanted)

    def _stream(self) -> None:
        requests = [self._request() for _ in range(self._source.randint(2, STREAMED))]
        wanted = [cells for _, cells in requests if cells is not None]
        asked = [Asked(request=requests[0][0])]
        for (before, _), (one, _) in pairwise(requests):
            asked.append(Asked(request=one, idle=_idle(before, one)))
        for got, cells in zip(self._host.stream(asked), wanted, strict=True):
            if got is not None:
                self._check(list(got), cells)
        self._told = len(self._sent)
        self._found.writes += len(requests) - len(wanted)

    def _request(self) -> tuple[Request, list[int] | None]:
        """A streamed request, and the words that a read must return."""
        address, count = self._place(SHORT)
        address -= address % SHORT  # so that no request crosses the end of a page
        if self._source.random() < 0.5:
            request = Request(sequence=0, command=Command.READ, address=address, words=count)
            return request, self._wanted(address, count)
        words = self._words(address, count)
        write = Request(sequence=0, command=Command.WRITE, address=address, data=tuple(words))
        return write, None

    def _place(self, most: int) -> tuple[int, int]:
        """An address and a number of words; few, more often than not."""
        count = round(most ** self._source.random())
        return self._source.randrange(USABLE - LONGEST), count

    def _words(self, address: int, count: int) -> list[int]:
        """Random words, which are going to be sent to these addresses."""
        words = [
            self._source.choice((self._source.getrandbits(32), _ESCAPED)) for _ in range(count)
        ]
        for at, word in enumerate(words, address):
            self._sent.append((at, word))
            self._cells[at % CELLS] = word
        return words

    def _wanted(self, address: int, count: int) -> list[int]:
        """What a read must return after all that was sent before."""
        return [self._cells[at % CELLS] for at in range(address, address + count)]

    def _check(self, got: list[int], wanted: list[int]) -> None:
        self._found.reads += 1
        self._found.wrong_reads += got != wanted

    def _compare(self, cells: list[int]) -> None:
        """Compare the log with what was sent; writes to `cells`, too, what the log has."""
        (count,) = self._host.read(COUNT, 1)
        new = (count - self._logged) % (1 << 32)
        logged = self._log(min(new, len(self._sent)))
        differ = sum(one != other for one, other in zip(logged, self._sent, strict=False))
        missing, unasked = max(0, self._told - new), new - len(logged)
        for address, word in logged:
            cells[address % CELLS] = word
        self._logged = count
        self._found.words += new
        self._found.wrong_writes += differ + missing + unasked

    def _log(self, count: int) -> list[tuple[int, int]]:
        """The first `count` entries of the log for this batch."""
        first = self._logged % ENTRIES
        size = min(count, ENTRIES - first)
        words = self._host.read(LOG + 2 * first, 2 * size) + self._host.read(
            LOG, 2 * (count - size)
        )
        return list(zip(words[::2], words[1::2], strict=True))


def _idle(before: Request, request: Request) -> int:
    """Bytes between two requests, so that the core has answered the first one when the other is
    complete; if not, which is rare, it drops the other one.
    """
    check = (REQUEST_BYTES + link.CRC_BYTES + 4 * len(before.data)) // 4
    answer = REPLY_BYTES + link.CRC_BYTES + 2 + 5 * before.words
    return max(0, check + len(before.data) + answer - len(request.encode()))
