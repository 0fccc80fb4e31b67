# amaranth: UnusedElaboratable=no
"""Link against a host with a ledger: requests in order, out of order, repeated and damaged."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from lbq_hw.core.host.link import Link
from lbq_hw.host.frames import Replies, Reply, Request
from lbq_hw.isa.link import BAKED, FRAME_WORDS, Command, Status
from lbq_hw.sim.benches.harness import Bench, Settings
from lbq_hw.sim.ends import Monitor

TAG = 0xABCD1234
SHAPES: tuple[dict[str, Any], ...] = (
    {"divisor": 12, "tag": TAG},
    {"divisor": 217, "tag": TAG, "registers": 1},
    {"divisor": 4, "tag": TAG, "registers": 1, "door": True},
)
QUIET = 900
"""Cycles in which a request that is to be dropped would have been answered."""
TABLES, REGISTERS = 0x20000000, 0x70000000


def block(shape: int) -> Link:
    return Link(**SHAPES[shape])


class Memory:
    """The core's port: words by address. A request is taken after a random wait."""

    done = True

    def __init__(self, port: Any, seed: int) -> None:
        self.port = port
        self.samples = [port.valid, port.write, port.addr, port.w_data]
        self.words: dict[int, int] = {}
        self.writes: list[tuple[int, int]] = []
        self.random = random.Random(seed)
        self.ready, self.answer = False, None

    def set(self, ctx: Any) -> None:
        self.ready = self.answer is None and self.random.random() < 0.4
        ctx.set(self.port.ready, self.ready)
        ctx.set(self.port.r_valid, self.answer is not None)
        ctx.set(self.port.r_data, self.answer or 0)

    def see(self, cycle: int, valid: int, write: int, address: int, data: int) -> None:
        del cycle
        self.answer = None
        if not (valid and self.ready):
            return
        if write:
            self.words[address] = data
            self.writes.append((address, data))
        else:
            self.answer = self.words.get(address, address)


class Host:
    """The results of requests by the rules of `lbq_hw.isa.link`: writes, replies, the divisor."""

    def __init__(self, divisor: int) -> None:
        self.last: int | None = None
        self.words: dict[int, int] = {}
        self.writes: list[tuple[int, int]] = []
        self.baked = TAG
        self.divisor = divisor

    def take(self, request: Request) -> Reply:
        repeated = self.last is not None and request.sequence == self.last
        follows = self.last is not None and request.sequence == (self.last + 1) % 256
        begins = request.command is Command.SYNC
        if not (begins or repeated or follows):
            return Reply(sequence=request.sequence, status=Status.SEQUENCE)
        if begins or follows:
            self.last = request.sequence
            self._execute(request)
        if request.command is Command.DIVISOR:
            self.divisor = request.address
        read = request.command is Command.READ
        places = range(request.address, request.address + request.words) if read else ()
        data = tuple(self.baked if at == BAKED else self.words.get(at, at) for at in places)
        return Reply(sequence=request.sequence, status=Status.OK, data=data)

    def _execute(self, request: Request) -> None:
        for address, data in enumerate(request.data, request.address):
            self.words[address] = data
            self.writes.append((address, data))
            if address < REGISTERS:
                self.baked = 0


@cocotb.test()
async def random_requests(dut: Any) -> None:
    sizes = SHAPES[Settings.from_env().shape]
    bench = await Bench.start(dut, Link(**sizes))
    dut.idle.value = 1
    memory = bench.add(Memory(bench.block.port, bench.random.getrandbits(32)))
    host, found = Host(sizes["divisor"]), Replies()
    requests = list(drawn(bench.random, 20 * bench.settings.length))
    expected = [host.take(request) for request, damage in requests if not damage]
    board = bench.expect("replies", [told(reply) for reply in expected])

    def take(byte: int) -> None:
        for reply in found.feed(bytes((byte,))):
            board.put(told(reply))

    bench.add(Monitor(bench.port("o"), None, bench.stalls(0.3), take))
    for request, damage in requests:
        if board.error is not None:
            break  # finish() tells it
        count, given = board.count, spoilt(request.encode(), damage)
        payloads = [{"data": byte, "broken": 0} for byte in given]
        await bench.until(bench.drive("i", payloads, stall=bench.stalls(0.2)))
        for _ in range(QUIET if damage else 20_000):
            if board.count > count or board.error is not None:
                break
            await RisingEdge(dut.clk)
        await bench.cycles(4)  # the link has processed it
    bench.expect("writes", [host.writes]).put(memory.writes)
    bench.expect("divisor", [host.divisor]).put(int(dut.divisor.value))
    await bench.finish()


def drawn(source: random.Random, count: int) -> Any:
    """A session: requests, and which byte of each is damaged, as a number from its end; 0: none."""
    last = source.randrange(256)
    yield Request(sequence=(last + 9) % 256, command=Command.READ, words=1), 0  # refused
    yield Request(sequence=last, command=Command.SYNC), 0
    before = None
    for _ in range(count):
        kind = source.choice(("next", "next", "next", "next", "again", "far", "damaged"))
        if kind == "again" and before is not None:
            yield before, 0
            continue
        far = source.randrange(2, 255)
        sequence = (last + (far if kind == "far" else 1)) % 256
        request = body(source, sequence)
        yield request, source.randrange(2, 8) if kind == "damaged" else 0
        if kind not in ("far", "damaged"):
            last, before = sequence, request


def body(source: random.Random, sequence: int) -> Request:
    """A random read, write or new divisor."""
    at = source.choice((TABLES, REGISTERS)) + source.randrange(16)
    size = source.choice((1, 1, 2, 3, 5, 9, 16 if source.random() < 0.8 else FRAME_WORDS))
    match source.choice((Command.READ, Command.READ, Command.WRITE, Command.DIVISOR)):
        case Command.READ if source.random() < 0.2:
            return Request(sequence=sequence, command=Command.READ, address=BAKED, words=1)
        case Command.READ:
            return Request(sequence=sequence, command=Command.READ, address=at, words=size)
        case Command.WRITE:
            words = tuple(source.choice((0x7E7D187E, source.getrandbits(32))) for _ in range(size))
            return Request(sequence=sequence, command=Command.WRITE, address=at, data=words)
        case _:
            cycles = source.randrange(4, 4096)
            return Request(sequence=sequence, command=Command.DIVISOR, address=cycles)


def spoilt(frame: bytes, damage: int) -> bytes:
    """The frame with one bit of a byte before its end flipped; 0 leaves it."""
    if not damage:
        return frame
    place = len(frame) - damage
    return frame[:place] + bytes((frame[place] ^ 1,)) + frame[place + 1 :]


def told(reply: Reply) -> dict[str, Any]:
    words: Sequence[int] = reply.data
    return {"sequence": reply.sequence, "status": reply.status.value, "data": list(words)}
