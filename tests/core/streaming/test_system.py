# amaranth: UnusedElaboratable=no
"""A streaming core through its two pins; tests/sim/test_stream_board.py runs whole recordings."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from core.harness import Bench
from streams import counting_network

from lbq_hw.core.streaming.system import StreamSystem
from lbq_hw.host.frames import Replies, Reply, Request, cuts
from lbq_hw.isa.link import Command, Status
from lbq_hw.streaming import records
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.cycles import step_cycles
from lbq_hw.streaming.machine import Machine
from lbq_hw.streaming.program import StreamProgram
from lbq_hw.streaming.records import REGISTERS, RESET, STEP, StreamError, StreamRegion

Session = Generator[Request, Reply, None]
Answer = Generator[Request, Reply, tuple[int, ...]]
DONE = 2  # of the status


class Line:
    """The host's side of the pins: one request after the other, each when the last is answered.

    `divisor` is the cycles of a bit, which a request for another changes once it is answered.
    """

    def __init__(self, system: Any, session: Session, divisor: int) -> None:
        self.rx, self.samples = system.rx, [system.tx]
        self.session, self.divisor = session, divisor
        self.replies, self.received = Replies(), []
        self.request = next(session)
        self.bits = self._bits(self.request.encode())
        self.since = -1  # cycles since the start bit of a byte
        self.byte: list[int] = []
        self.done = False

    def _bits(self, data: bytes) -> deque[int]:
        bits = [bit for byte in data for bit in (0, *(byte >> i & 1 for i in range(8)), 1)]
        return deque(bit for bit in bits for _ in range(self.divisor))

    def set(self, ctx: Any) -> None:
        ctx.set(self.rx, self.bits.popleft() if self.bits else 1)

    def see(self, cycle: int, tx: int) -> None:
        del cycle
        if self.since < 0 and tx:
            return
        self.since += 1
        if self.since % self.divisor == self.divisor // 2:
            self.byte.append(tx)
        if len(self.byte) == 10:
            start, *bits, stop = self.byte
            assert (start, stop) == (0, 1)
            self.since, self.byte = -1, []
            for reply in self.replies.feed(bytes([sum(bit << i for i, bit in enumerate(bits))])):
                self._next(reply)

    def _next(self, reply: Reply) -> None:
        if self.request.command is Command.DIVISOR:
            self.divisor = self.request.address
        try:
            self.request = self.session.send(reply)
        except StopIteration:
            self.done = True
        else:
            self.bits = self._bits(self.request.encode())


class Host:
    """Requests as a host numbers them."""

    def __init__(self) -> None:
        self.sequence = 0

    def ask(self, command: Command, **fields: Any) -> Answer:
        request = Request(sequence=self.sequence, command=command, **fields)
        self.sequence += 1
        reply = yield request
        assert (reply.sequence, reply.status) == (request.sequence, Status.OK)
        return reply.data

    def write(self, address: int, words: Sequence[int]) -> Session:
        for at, size in cuts(address, len(words)):
            data = tuple(words[at : at + size])
            yield from self.ask(Command.WRITE, address=address + at, data=data)

    def read(self, address: int, count: int = 1) -> Answer:
        return (yield from self.ask(Command.READ, address=address, words=count))

    def state(self) -> Answer:
        """Status, error, layer, cycles and steps."""
        return (yield from self.read(REGISTERS.index("status"), 5))

    def command(self, word: int) -> Session:
        """Whatever it starts is done before the line has carried another request."""
        yield from self.write(REGISTERS.index("control"), [word])

    def load(self, program: StreamProgram) -> Session:
        for region, entries in program.image.items():
            assert records.slices(program.config, region) == 1
            yield from self.write(region << 28, list(entries))


def small_program() -> StreamProgram:
    """A network that counts events, in a core with so many levels that addresses are long."""
    network = counting_network()
    alone = compile_stream(network, lanes=4, units=2, horizon=4)
    roomy = replace(alone.config, level_words=1 << 13)
    return compile_stream(network, lanes=4, units=2, horizon=4, config=roomy)


def session(program: StreamProgram, recording: list[int], cycles: list[int]) -> Session:
    """An event is written and a reset made; then a program is loaded and makes a step for each
    number of events; then the line gets another rate. `cycles` of the reset and the steps.
    """
    host, machine, c = Host(), Machine(program), program.config
    event = records.event_word(0, 0, 0, 1)
    yield from host.ask(Command.SYNC)
    assert (yield from host.read(0, 2)) == (records.MAGIC, int(c.digest[:8], 16))
    yield from host.write(StreamRegion.EVENTS << 28, [event])
    assert (yield from host.read(StreamRegion.MAPS << 28)) == (1,)
    yield from host.command(RESET)
    status, error, _, taken, number = yield from host.state()
    assert (status, error, number) == (DONE, StreamError.NONE, 0)
    cycles.append(taken)
    if recording:
        yield from host.load(program)
    for number, count in enumerate(recording, 1):
        yield from host.write(StreamRegion.EVENTS << 28, [event] * count)
        yield from host.command(STEP)
        cycles.append(sum(step_cycles(c, machine.step([event] * count))))
        assert (yield from host.state()) == (DONE, StreamError.NONE, 0, cycles[-1], number)
        logits = yield from host.read(records.address(c, StreamRegion.MEMBRANES, program.logits))
        assert program.read_logits(logits).tolist() == [sum(recording[:number])]
    yield from host.ask(Command.DIVISOR, address=7)
    yield from host.read(records.address(c, StreamRegion.LEVELS, c.level_words - 1))
    assert (yield from host.state())[:2] == (DONE, StreamError.NONE)


@pytest.mark.parametrize("recording", [[], pytest.param([1, 0, 1], marks=pytest.mark.slow)])
def test_a_host_reads_writes_and_starts_a_core_through_the_pins(recording: list[int]) -> None:
    program = small_program()
    system: Any = StreamSystem(program.config, clock_hz=4_000_000, baud=1_000_000)
    cycles: list[int] = []
    bench = Bench(system)
    bench.add(Line(system, session(program, recording, cycles), 4))
    seen = bench.probe(busy=system.busy)
    bench.run(limit=60_000)
    changes = [at for at, (old, new) in enumerate(pairwise(seen["busy"])) if old != new]
    assert [end - begin for begin, end in zip(changes[::2], changes[1::2], strict=True)] == cycles


def test_a_rate_that_the_clock_does_not_give_is_refused() -> None:
    text = "baud must be 977..1000000 at 4000000 Hz, not 3000000"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        StreamSystem(small_program().config, clock_hz=4_000_000, baud=3_000_000)
