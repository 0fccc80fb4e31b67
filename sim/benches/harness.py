"""Testbenches under cocotb: the drivers and monitors of `sim.ends`, and the start and end of a
test.

All ends act at the rising edge: they see the values of all signals just before it, and their own
changes take effect after it. So cycles are counted as in the contracts of the blocks.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import cocotb
from amaranth import Const, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, SimTimeoutError, Timer, with_timeout

from lbq_hw.sim import ends
from lbq_hw.sim.benches.scoreboard import Scoreboard
from lbq_hw.sim.ends import Monitor
from lbq_hw.sim.models.traffic import Stall, never, plain, stalls

PERIOD = 10  # ns
VARIABLE = "LBQ_BENCH"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The runner's settings for a testbench.

    `length` scales the traffic. `spoil` makes every checker wait for one wrong value, so that a
    testbench that still passes checks nothing. `socket` is where one waits for
    `sim.benches.server`, `folder` what `sim.own_network` prepares.
    """

    shape: int = 0
    length: int = 1
    spoil: bool = False
    socket: str = ""
    folder: str = ""

    def to_env(self) -> dict[str, str]:
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_env(cls) -> Settings:
        return cls(**json.loads(os.environ[VARIABLE]))


def message(name: str, shape: Any, bits: str, view: Callable[[Any], Any]) -> Any:
    """A message from the bits of a payload. Bits that the view does not read may be undefined."""
    low, high = (view(unpack(shape, int(re.sub("[^01]", bit, bits), 2))) for bit in "01")
    if low != high:
        raise ValueError(f"the payload of {name} must be defined, not {bits}")
    return low


def pack(shape: Any, value: Any) -> int:
    """Bits of a payload."""
    return shape.const(value).as_bits() if isinstance(shape, data.Layout) else int(value)


def unpack(shape: Any, bits: int) -> Any:
    """A payload of bits; the inverse of `pack`."""
    if isinstance(shape, data.Layout):
        return plain(shape.from_bits(bits))
    return Const(bits, shape).value


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


class Bench(ends.Bench):
    """A block in its simulator, with its drivers and checkers."""

    def __init__(self, dut: Any, block: Any) -> None:
        super().__init__(block)
        self.dut = dut
        self.settings = Settings.from_env()
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.boards: list[Scoreboard] = []
        self._names = {id(signal): name for name, _, signal in _ports(block)}

    @classmethod
    async def start(cls, dut: Any, block: Any) -> Bench:
        """The clock runs, every input is 0, and reset was pulsed."""
        await reset(dut, [name for name, member, _ in _ports(block) if member.flow is In])
        return cls(dut, block)

    def add(self, end: Any) -> Any:
        if not self.ends:
            cocotb.start_soon(self._run())
        return super().add(end)

    async def _run(self) -> None:
        edge, cycle = RisingEdge(self.dut.clk), 0
        while True:
            there = list(self.ends)  # ends that are added now begin with the next cycle
            for end in there:
                end.set(self)
            await edge
            for end in there:
                end.see(cycle, *map(self._sampled, end.samples))
            cycle += 1

    def set(self, signal: Any, value: Any) -> None:
        """Drive a signal of the block."""
        handle = getattr(self.dut, self._names[id(Value.cast(signal))])
        handle.value = pack(signal.shape(), value)

    def _sampled(self, signal: Any) -> Any:
        """The value of a signal; its bits if some of them are undefined."""
        plain = Value.cast(signal)
        if isinstance(plain, Const):
            return plain.value
        found = getattr(self.dut, self._names[id(plain)]).value
        if len(plain) > 1 and not found.is_resolvable:
            return str(found)
        shape = signal.shape()
        return shape.from_bits(int(found)) if isinstance(shape, data.Layout) else int(found)

    def stalls(self, rate: float) -> Stall:
        """Stalls from a random generator of their own."""
        return stalls(self.random.getrandbits(32), rate)

    def expect(self, name: str, expected: Iterable[Any]) -> Scoreboard:
        """A checker without a monitor: its `put` is called with each message."""
        board = Scoreboard(name, expected, spoil=self.settings.spoil)
        self.boards.append(board)
        return board

    def monitor(
        self,
        name: str,
        expected: Iterable[Any],
        *,
        stall: Stall = never,
        view: Callable[[Any], Any] = lambda payload: payload,
    ) -> Scoreboard:
        """Take all payloads of an output stream and check them. `view` turns a payload into a
        message, for parts that the contract leaves open.
        """
        board, port = self.expect(name, expected), self.port(name)

        def take(payload: Any) -> None:
            if isinstance(payload, str | int):
                bits = payload if isinstance(payload, str) else f"{payload:b}"
                payload = message(name, port.payload.shape(), bits, view)
            else:
                payload = view(payload)
            board.put(payload)

        self.add(Monitor(port, None, stall, take))
        return board

    async def cycles(self, count: int) -> None:
        await ClockCycles(self.dut.clk, count)

    async def until(self, end: Any) -> None:
        """Wait until an end is done."""
        while not end.done:
            await RisingEdge(self.dut.clk)

    async def finish(self, *, limit: int = 20_000, extra: int = 20) -> None:
        """Wait for all ends, then `extra` cycles, in which nothing more may come; fail after
        `limit`.
        """
        with contextlib.suppress(SimTimeoutError):  # an end then reports the failure
            await with_timeout(self._all_done(), limit * PERIOD, "ns")
            await self.cycles(extra)
        for board in self.boards:
            board.check()
        for end in self.ends:
            assert end.done, f"{len(end.left)} payloads were not taken"

    async def _all_done(self) -> None:
        for end in (*self.boards, *self.ends):
            await self.until(end)


def _ports(block: Any) -> Iterator[tuple[str, Any, Signal]]:
    """Name, member and signal of every port that the Verilog has."""
    for path, member, value in block.signature.flatten(block):
        signal = Value.cast(value)
        if isinstance(signal, Signal) and len(signal):
            yield "__".join(path), member, signal
