"""Ends of a testbench in any simulator: they drive and watch the ports of a block.

One loop runs all ends of a bench, so that cycles have the same number for all of them. In each
cycle the ends drive their signals, the clock ticks, and the ends see the values of all signals just
before the edge. There are two such loops: ``tests/core/harness.py`` for Amaranth's own simulator,
and `sim.benches.harness` for simulators that cocotb drives. An end has

    samples         signals that it wants to see
    set(ctx)        called before each edge: ``ctx.set(signal, value)`` drives a signal
    see(cycle, *)   called after it, with the values of `samples`
    done            whether the bench may end
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from amaranth import Const, Value

from lbq_hw.sim.models.traffic import Stall, never, plain


class Driver:
    """Offers payloads in order, each valid until taken; stalls come between payloads only."""

    def __init__(self, port: Any, payloads: Iterable[Any], stall: Stall) -> None:
        self.port = port
        self.samples = [port.ready]
        self.left = deque(payloads)
        self.stall = stall
        self.valid = False
        self.cycles: list[int] = []

    @property
    def done(self) -> bool:
        return not self.left

    def set(self, ctx: Any) -> None:
        if self.left and not self.valid and not self.stall():
            ctx.set(self.port.payload, self.left[0])
            self.valid = True
        ctx.set(self.port.valid, self.valid)

    def see(self, cycle: int, ready: int) -> None:
        if self.valid and ready:
            self.cycles.append(cycle)
            self.left.popleft()
            self.valid = False


class Monitor:
    """Takes the payloads of a stream, and checks that an offer is stable until it is taken.

    Payloads are recorded, and passed to `take` as they come.
    """

    def __init__(
        self,
        port: Any,
        count: int | None,
        stall: Stall,
        take: Callable[[Any], object] = plain,
    ) -> None:
        self.port = port
        self.samples = [port.valid, port.payload]
        self.count = count
        self.stall, self.take = stall, take
        self.ready = False
        self.pending: Any = None
        self.cycles: list[int] = []
        self.payloads: list[Any] = []

    @property
    def done(self) -> bool:
        return self.count is None or len(self.payloads) >= self.count

    def set(self, ctx: Any) -> None:
        if isinstance(Value.cast(self.port.ready), Const):
            self.ready = True
            return
        self.ready = not self.stall()
        ctx.set(self.port.ready, self.ready)

    def see(self, cycle: int, valid: int, payload: Any) -> None:
        payload = plain(payload) if valid else None
        assert self.pending in (None, payload), "an offer was changed or withdrawn"
        self.pending = None if self.ready else payload
        if valid and self.ready:
            self.payloads.append(payload)
            self.cycles.append(cycle)
            self.take(payload)


class Probe:
    """Records signals in every cycle."""

    def __init__(self, signals: Mapping[str, Any]) -> None:
        self.names = list(signals)
        self.samples = [Value.cast(signal) for signal in signals.values()]
        self.done = True
        self.history: dict[str, list[int]] = {name: [] for name in self.names}

    def set(self, ctx: Any) -> None:
        """Drive nothing."""

    def see(self, cycle: int, *values: int) -> None:
        del cycle
        for name, value in zip(self.names, values, strict=True):
            self.history[name].append(value)


class Permit:
    """Drives a bit: 1, except during stalls."""

    def __init__(self, signal: Any, stall: Stall) -> None:
        self.signal, self.stall = signal, stall
        self.samples: list[Any] = []
        self.done = True

    def set(self, ctx: Any) -> None:
        ctx.set(self.signal, not self.stall())

    def see(self, cycle: int) -> None:
        """Watch nothing."""


class Script:
    """Sets signals from one dict of payloads per cycle, those not named to 0; done at the end."""

    def __init__(self, signals: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]) -> None:
        self.signals = signals
        self.samples: list[Any] = []
        self.steps = list(steps)
        self.at = 0

    @property
    def done(self) -> bool:
        return self.at >= len(self.steps)

    def set(self, ctx: Any) -> None:
        step = {} if self.done else self.steps[self.at]
        for name, signal in self.signals.items():
            ctx.set(signal, step.get(name, 0))
        self.at += 1

    def see(self, cycle: int) -> None:
        """Watch nothing."""


class Hold:
    """Drives signals with one value each."""

    def __init__(self, values: Iterable[tuple[Any, Any]]) -> None:
        self.values = list(values)
        self.samples: list[Any] = []
        self.done = True

    def set(self, ctx: Any) -> None:
        for signal, value in self.values:
            ctx.set(signal, value)

    def see(self, cycle: int) -> None:
        """Watch nothing."""


class Store:
    """A memory behind a read port: answers `late` cycles after an enabled read."""

    def __init__(self, port: Any, words: Sequence[int], late: int) -> None:
        self.data = Value.cast(port.data)
        self.samples = [port.en, port.addr]
        self.words = words
        self.done = True
        self.answers = [0] * late  # the next one first
        self.reads: list[tuple[int, int]] = []

    def set(self, ctx: Any) -> None:
        ctx.set(self.data, self.answers[0])

    def see(self, cycle: int, enabled: int, address: int) -> None:
        answer = self.answers[-1]
        if enabled:
            self.reads.append((cycle, address))
            answer = self.words[address] if address < len(self.words) else 0
        self.answers = [*self.answers[1:], answer]


def ones(history: Iterable[int]) -> list[int]:
    """Cycles in which a signal is not 0."""
    return [cycle for cycle, value in enumerate(history) if value]


def settling(history: Sequence[Any], starts: Sequence[int], expected: Sequence[Any]) -> int:
    """Settling time: cycles from each start until a signal keeps its value to the next start."""
    late = [0]
    for start, end, value in zip(starts, [*starts[1:], len(history) - 1], expected, strict=True):
        assert history[end] == value, f"{history[end]} in cycle {end}, not {value}"
        wrong = [cycle for cycle in range(start, end) if history[cycle] != value]
        late.append(wrong[-1] + 1 - start if wrong else 0)
    return max(late)


class Bench:
    """One simulation of one block, with its ends. A port is given as an object or by its name."""

    def __init__(self, block: Any) -> None:
        self.block = block
        self.ends: list[Any] = []

    def port(self, port: Any) -> Any:
        return getattr(self.block, port) if isinstance(port, str) else port

    def add(self, end: Any) -> Any:
        """Add an end, from the next cycle on."""
        self.ends.append(end)
        return end

    def drive(self, port: Any, payloads: Iterable[Any], *, stall: Stall = never) -> Driver:
        """Feed a stream; `cycles` of the driver tells when each payload was taken."""
        return self.add(Driver(self.port(port), payloads, stall))

    def permit(self, signal: Any, *, stall: Stall = never) -> Permit:
        """Drive a bit: 1, except during stalls."""
        return self.add(Permit(self.port(signal), stall))

    def probe(self, **signals: Any) -> dict[str, list[int]]:
        """Values of signals, one per cycle."""
        return self.add(Probe(signals)).history

    def script(self, signals: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]) -> Script:
        """Drive loose signals, cycle by cycle."""
        return self.add(Script(signals, steps))

    def hold(self, *values: tuple[Any, Any]) -> Hold:
        """Drive signals with one value each."""
        return self.add(Hold(values))

    def store(self, port: Any, words: Sequence[int], *, late: int = 1) -> Store:
        """Answer a read port like a memory of packed words."""
        return self.add(Store(self.port(port), words, late))
