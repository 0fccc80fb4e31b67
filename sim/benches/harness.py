"""Ends of a testbench under cocotb: stream drivers and monitors, and what starts and ends it.

All ends act at the rising edge: they see what every signal was before it, and what they set then
holds from it on. So a cycle is as in the contracts of the blocks.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import cocotb
from amaranth import Const, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In
from cocotb.clock import Clock
from cocotb.triggers import (
    ClockCycles,
    Event,
    RisingEdge,
    SimTimeoutError,
    Timer,
    gather,
    with_timeout,
)

from lbq_hw.sim.benches.scoreboard import Scoreboard
from lbq_hw.sim.models.traffic import Stall, never, plain, stalls

PERIOD = 10  # ns
VARIABLE = "LBQ_BENCH"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the runner tells a testbench.

    `length` scales the traffic. `spoil` makes every checker wait for one wrong value, so that a
    testbench that still passes checks nothing. `socket` is where one waits for
    `sim.benches.server`.
    """

    shape: int = 0
    length: int = 1
    spoil: bool = False
    socket: str = ""

    def to_env(self) -> dict[str, str]:
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_env(cls) -> Settings:
        return cls(**json.loads(os.environ[VARIABLE]))


class Stream:
    """The signals of a stream, and its payloads as plain values."""

    def __init__(self, dut: Any, name: str, port: Any) -> None:
        self.clk = dut.clk
        self.valid, self.payload = getattr(dut, f"{name}__valid"), getattr(dut, f"{name}__payload")
        constant = isinstance(Value.cast(port.ready), Const)
        self.ready = None if constant else getattr(dut, f"{name}__ready")
        self.shape = port.payload.shape()

    def offer(self, payload: Any) -> None:
        self.payload.value = pack(self.shape, payload)
        self.valid.value = 1

    def message(self, bits: str, view: Callable[[Any], Any]) -> Any:
        """What bits of the payload say. Undefined ones may stand where the view does not look."""
        low, high = (view(unpack(self.shape, int(re.sub("[^01]", bit, bits), 2))) for bit in "01")
        if low != high:
            raise ValueError(f"{self.payload._name} must be defined, not {bits}")
        return low


def pack(shape: Any, value: Any) -> int:
    """Bits of a payload."""
    return shape.const(value).as_bits() if isinstance(shape, data.Layout) else int(value)


def unpack(shape: Any, bits: int) -> Any:
    """A payload of bits; the inverse of `pack`."""
    if isinstance(shape, data.Layout):
        return plain(shape.from_bits(bits))
    return Const(bits, shape).value


class End(Protocol):
    """What a testbench waits for, and asks at its end whether all was right."""

    done: Event

    def check(self) -> None: ...


class StreamDriver:
    """Offers payloads in order, each valid until taken; stalls come between payloads only."""

    def __init__(self, stream: Stream, payloads: Iterable[Any], stall: Stall) -> None:
        self.stream, self.left, self.stall = stream, deque(payloads), stall
        self.done = Event()
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        stream, edge = self.stream, RisingEdge(self.stream.clk)
        while self.left:
            while self.stall():
                await edge
            stream.offer(self.left[0])
            await edge
            while stream.ready is not None and not stream.ready.value:
                await edge
            stream.valid.value = 0
            self.left.popleft()
        self.done.set()

    def check(self) -> None:
        assert not self.left, f"{len(self.left)} payloads were not taken"


class StreamMonitor:
    """Takes what a stream offers, checks that an offer stays until it is taken, and passes it on.

    `view` makes a message of a payload, for what the contract leaves open.
    """

    def __init__(
        self, stream: Stream, board: Scoreboard, stall: Stall, view: Callable[[Any], Any]
    ) -> None:
        self.stream, self.board, self.stall, self.view = stream, board, stall, view
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        stream, edge = self.stream, RisingEdge(self.stream.clk)
        pending = None
        while True:
            ready = stream.ready is None or not self.stall()
            if stream.ready is not None:
                stream.ready.value = ready
            await edge
            payload = str(stream.payload.value) if stream.valid.value else None
            if pending not in (None, payload):
                self.board.error = f"{self.board.name}: an offer was changed or withdrawn"
                self.board.done.set()
            pending = None if ready else payload
            if ready and payload is not None:
                self.board.put(stream.message(payload, self.view))


class Permit:
    """Drives a bit: 1 but for stalls. Nothing waits for it."""

    def __init__(self, clk: Any, bit: Any, stall: Stall) -> None:
        self.clk, self.bit, self.stall = clk, bit, stall
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        edge = RisingEdge(self.clk)
        while True:
            self.bit.value = not self.stall()
            await edge


async def reset(dut: Any, inputs: Iterable[str]) -> None:
    """Set inputs to 0, start the clock and pulse reset."""
    for name in inputs:
        getattr(dut, name).value = 0
    # Icarus starts with X: no edge may come before the inputs are set, nor reset rise at t = 0.
    dut.rst.value = 0
    await Timer(PERIOD, "ns")
    Clock(dut.clk, PERIOD, unit="ns").start()
    for level in (1, 0):
        await ClockCycles(dut.clk, 2)
        dut.rst.value = level
    await RisingEdge(dut.clk)


class Bench:
    """A block in its simulator, with what drives and checks it."""

    def __init__(self, dut: Any, block: Any) -> None:
        self.dut, self.block = dut, block
        self.settings = Settings.from_env()
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.ends: list[End] = []

    @classmethod
    async def start(cls, dut: Any, block: Any) -> Bench:
        """The clock runs, every input is 0, and reset was pulsed."""
        members = (
            (path, member, Value.cast(value))
            for path, member, value in block.signature.flatten(block)
        )
        inputs = (
            "__".join(path)
            for path, member, signal in members
            if member.flow is In and isinstance(signal, Signal) and len(signal)
        )
        await reset(dut, inputs)
        return cls(dut, block)

    def stalls(self, rate: float) -> Stall:
        """Spells of stalls that no other end has."""
        return stalls(self.random.getrandbits(32), rate)

    def drive(self, name: str, payloads: Iterable[Any], *, stall: Stall = never) -> StreamDriver:
        """Feed an input stream."""
        driver = StreamDriver(self._stream(name), payloads, stall)
        self.ends.append(driver)
        return driver

    def expect(self, name: str, expected: Iterable[Any]) -> Scoreboard:
        """A checker without a monitor: whoever sees a message calls its `put`."""
        board = Scoreboard(name, expected, spoil=self.settings.spoil)
        self.ends.append(board)
        return board

    def monitor(
        self,
        name: str,
        expected: Iterable[Any],
        *,
        stall: Stall = never,
        view: Callable[[Any], Any] = lambda payload: payload,
    ) -> Scoreboard:
        """Empty an output stream and check what comes."""
        board = self.expect(name, expected)
        StreamMonitor(self._stream(name), board, stall, view)
        return board

    def permit(self, name: str, *, stall: Stall = never) -> Permit:
        """Drive a bit: 1 but for stalls."""
        return Permit(self.dut.clk, getattr(self.dut, name), stall)

    async def cycles(self, count: int) -> None:
        await ClockCycles(self.dut.clk, count)

    async def finish(self, *, limit: int = 20_000, extra: int = 20) -> None:
        """Wait for all ends, then `extra` cycles for what should not come; fail after `limit`."""
        waiting = gather(*(end.done.wait() for end in self.ends))
        with contextlib.suppress(SimTimeoutError):  # then some end has something to say
            await with_timeout(waiting, limit * PERIOD, "ns")
            await self.cycles(extra)
        for end in self.ends:
            end.check()

    def _stream(self, name: str) -> Stream:
        return Stream(self.dut, name, getattr(self.block, name))
