# amaranth: UnusedElaboratable=no
"""The port of a streaming core against a model of its contract, request by request."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from core.harness import Bench, ones
from core.streaming.layers import SMALL
from core.streaming.port_model import CONTROL, READ, WRITTEN, Model

from lbq_hw.core.streaming.port import StreamPort
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import SHIFT
from lbq_hw.sim.models.traffic import Stall, never, stalls
from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.records import CLEAR, REGISTERS, RESET, STEP, StreamRegion

CONFIGS = {
    "few slices": SMALL,
    "many slices": replace(
        SMALL, lanes=64, units=32, membrane_bits=20, membrane_words=50, weight_bits=3, floors=0,
        resets=0, side=40, columns=40, taps=13, param_words=5, map_rows=50,
    ),
}  # fmt: skip
STATUS, ERROR = REGISTERS.index("status"), REGISTERS.index("error")
PINS = ("en", "addr", "data")
Request = tuple[int, int | None]
"""An address, and what is written there; None of a read."""


def whole_entry(c: StreamConfig, source: random.Random) -> Iterator[Request]:
    """All slices of one, written or read in their order."""
    region = source.choice((*WRITTEN, *READ, StreamRegion.PARAMS, StreamRegion.MEMBRANES))
    first = records.address(c, region, source.randrange(records.depths(c)[region]))
    for part in range(records.slices(c, region)):
        yield first + part, source.getrandbits(SLICE) if region in WRITTEN else None


def random_requests(c: StreamConfig, source: random.Random, count: int) -> Iterator[Request]:
    """All that may be asked for, and what must be refused; often the error is read and cleared."""
    commands = [STEP, CLEAR, RESET, STEP | CLEAR, STEP | RESET, 0]
    for _ in range(count):
        region, data = source.choice(list(StreamRegion)), source.getrandbits(SLICE)
        depth, parts = records.depths(c)[region], records.slices(c, region)
        entry = source.choice((source.randrange(depth), depth - 1, depth, depth << 6))
        first = records.address(c, region, entry)
        match source.randrange(9):
            case 0:
                yield CONTROL, source.choice(commands)
            case 1:
                yield source.randrange(len(REGISTERS)), None
            case 2:
                yield source.randrange(len(REGISTERS)), data
            case 3:
                yield StreamRegion.EVENTS << SHIFT | source.randrange(records.EVENT_ENTRIES), data
            case 4 | 5:
                yield from whole_entry(c, source)
            case 6:
                yield source.getrandbits(4 + SHIFT), source.choice((None, data))
            case _:
                last = (1 << (parts - 1).bit_length()) - 1
                part = source.choice((source.randrange(parts), parts - 1, min(parts, last), last))
                yield first + part, source.choice((None, None, data))
        yield source.choice((ERROR, STATUS)), None
        if source.random() < 0.4:
            yield CONTROL, CLEAR


class Requests:
    """Offers requests, each until it is taken, with stalls in between."""

    def __init__(self, port: Any, requests: list[Request], stall: Stall) -> None:
        self.port, self.requests, self.stall = port, requests, stall
        self.samples = [port.ready, port.r_valid, port.r_data]
        self.offered: list[int] = []
        self.taken: list[int] = []
        self.answers: dict[int, int] = {}
        self.now = 0

    @property
    def done(self) -> bool:
        return len(self.taken) == len(self.requests)

    def set(self, ctx: Any) -> None:
        if len(self.offered) == len(self.taken) and not self.done and not self.stall():
            address, data = self.requests[len(self.taken)]
            ctx.set(self.port.addr, address)
            ctx.set(self.port.write, data is not None)
            ctx.set(self.port.w_data, data or 0)
            self.offered.append(self.now)
        ctx.set(self.port.valid, len(self.offered) > len(self.taken))

    def see(self, cycle: int, ready: int, answered: int, answer: int) -> None:
        self.now = cycle + 1
        if answered:
            self.answers[cycle] = answer
        if ready and len(self.offered) > len(self.taken):
            self.taken.append(cycle)


class Core:
    """Ends what was started after a while, with a membrane that overflows now and then."""

    def __init__(self, block: Any, source: random.Random) -> None:
        self.block, self.source = block, source
        self.samples = [block.step | block.reset]
        self.done, self.left, self.now = True, 0, 0
        self.finished: list[int] = []
        self.overflows: list[int] = []
        self.layers: list[int] = []

    def set(self, ctx: Any) -> None:
        overflow = self.left > 0 and self.source.random() < 0.02
        self.layers.append(self.source.getrandbits(8))
        ctx.set(self.block.finished, self.left == 1)
        ctx.set(self.block.overflow, overflow)
        ctx.set(self.block.layer, self.layers[-1])
        self.finished += [self.now] * (self.left == 1)
        self.overflows += [self.now] * overflow
        self.left -= self.left > 0

    def see(self, cycle: int, started: int) -> None:
        self.now = cycle + 1
        if started:
            self.left = self.source.randrange(1, 40)


def check(c: StreamConfig, requests: list[Request], source: random.Random, rate: float) -> None:
    memories = {
        region: [source.getrandbits(records.widths(c)[region]) for _ in range(depth)]
        for region, depth in records.depths(c).items()
        if region in READ
    }
    bench = Bench(StreamPort(c))
    block: Any = bench.block
    ports = {region: getattr(block.writes, region.name.lower()) for region in WRITTEN}
    host = bench.add(Requests(block.port, requests, stalls(1, rate) if rate else never))
    core = bench.add(Core(block, source))
    for region, words in memories.items():
        bench.store(getattr(block.reads, region.name.lower()), words)
    events = bench.monitor(block.events, stall=stalls(2, 0.5))
    seen = bench.probe(
        busy=block.busy, step=block.step, reset=block.reset,
        **{f"{r.name}_{n}": getattr(port, n) for r, port in ports.items() for n in PINS},
    )  # fmt: skip
    bench.run(extra=50)
    model = Model(c, memories, core.finished, core.overflows, core.layers)
    for cycle, request in zip(host.taken, requests, strict=True):
        model.request(cycle, *request)
    assert host.answers == model.answers
    assert dict(zip(events.cycles, events.payloads, strict=True)) == model.events
    assert {name: ones(seen[name]) for name in ("step", "reset")} == model.started
    busy = [cycle for begin, end in model.runs for cycle in range(begin + 1, end + 1)]
    assert ones(seen["busy"]) == busy
    stored = {
        (cycle, region, seen[f"{region.name}_addr"][cycle]): seen[f"{region.name}_data"][cycle]
        for region in WRITTEN
        for cycle in ones(seen[f"{region.name}_en"])
    }
    assert stored.keys() == model.writes.keys()
    assert all(stored[at] == word for at, word in model.writes.items() if word is not None)
    free = 0
    for (_, data), offered, taken in zip(requests, host.offered, host.taken, strict=True):
        soonest = max(offered + 1, free)
        assert taken == soonest or (taken > soonest and taken in model.events)
        free = taken + 3 if data is None else 0  # after the answer


@pytest.mark.parametrize("rate", [0, 0.5])
@pytest.mark.parametrize("name", CONFIGS)
def test_requests_are_executed_answered_or_refused(name: str, rate: float) -> None:
    c, source = CONFIGS[name], random.Random(name)
    check(c, list(random_requests(c, source, 150)), source, rate)


def test_what_is_beyond_a_region_or_an_entry_is_refused() -> None:
    c, requests = CONFIGS["many slices"], []
    for region in StreamRegion:
        depth, parts = records.depths(c)[region], records.slices(c, region)
        last = (1 << (parts - 1).bit_length()) - 1
        for entry, part in product((depth - 1, depth), {0, parts - 1, min(parts, last), last}):
            address = records.address(c, region, entry) + part
            for data in (None, 0):
                requests += [(address, data), (ERROR, None), (CONTROL, CLEAR)]
    check(c, requests, random.Random(4), 0)
