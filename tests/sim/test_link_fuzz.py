"""Frames with every kind of damage against the link's RTL and a model of its rules."""

from __future__ import annotations

import fcntl
import random
import struct
import subprocess
from functools import cache
from itertools import combinations
from pathlib import Path

from link_model import DAMAGE, FLAG, Model, Stream, lie
from simulators import CACHE, needs_verilator

from lbq_hw.core.host.link import Link
from lbq_hw.host.frames import Request, unwrap
from lbq_hw.isa.link import Command
from lbq_hw.sim.verilator import build_bench
from lbq_hw.sim.verilog import convert

pytestmark = needs_verilator

WAIT = 0x200


@cache
def program() -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "link.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = convert(Link(divisor=4), name="link")
        return build_bench(text, Path(__file__).with_name("link.cpp"), top="link", cache=CACHE)


def simulate(stream: Stream) -> tuple[bytes, list[tuple[int, int]]]:
    """Bytes that the link sent and words that it wrote; it waits after each flag."""
    items = [item | WAIT if item == FLAG else item for item in stream]
    data = struct.pack(f"<{len(items)}H", *items)
    done = subprocess.run([program()], input=data, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, "the link hangs"
    words = struct.unpack(f"<{len(done.stdout) // 4}I", done.stdout)
    sent, rest = bytes(words[1 : 1 + words[0]]), words[1 + words[0] :]
    assert len(rest) == 1 + 2 * rest[0]
    return sent, list(zip(rest[1::2], rest[2::2], strict=True))


def draw(source: random.Random, sequence: int) -> Request:
    command = source.choice((Command.READ, Command.WRITE, Command.WRITE, Command.SYNC))
    address = source.choice((source.randrange(1 << 32), source.randrange(16), 0x7D7E187E))
    count = source.choice((0, 1, 2, 3, 5, source.randrange(61)))
    data = [source.choice((source.randrange(1 << 32), 0, 0x7E7D187E)) for _ in range(count)]
    if command == Command.WRITE:
        return Request(sequence=sequence, command=command, address=address, data=tuple(data))
    words = count if command == Command.READ else 0
    return Request(sequence=sequence, command=command, address=address, words=words)


def test_10000_damaged_frames_do_nothing_and_the_next_good_frame_works() -> None:
    source = random.Random(4)
    model, stream = Model(), Stream()
    meant: set[bytes | None] = set()
    stream += Request(sequence=0, command=Command.READ, words=3).encode()  # refused: no SYNC yet
    stream += Request(sequence=7, command=Command.SYNC).encode()
    model.take(stream)
    for number in range(10_000):
        assert model.last is not None
        sequence = (model.last + source.choice((0, 1, 1, 1, 1, 2, 100))) % 256
        whole = draw(source, sequence).encode()
        meant.add(unwrap(whole[:-1]))
        damage = source.choice(DAMAGE)
        damaged = damage(source, list(whole))
        if damage is lie:
            meant.add(unwrap(bytes(damaged[:-1])))
        good = draw(source, 0)
        model.take([*damaged, FLAG])
        good = Request(
            sequence=(model.last + 1) % 256,
            command=good.command, address=good.address, words=good.words, data=good.data,
        )  # fmt: skip
        before = len(model.accepted)
        model.take(good.encode())
        assert len(model.accepted) == before + 1, number
        meant.add(unwrap(good.encode()[:-1]))
        stream += [*damaged, FLAG, *good.encode()]
    sent, written = simulate(stream)
    assert written == model.written
    assert sent == model.sent
    # The model itself takes no frame that nobody meant.
    assert set(model.accepted[2:]) <= meant
    assert len(written) > 10_000


def test_every_small_damage_of_one_frame() -> None:
    """Every byte replaced, lost or inserted, every place cut, every one or two bits flipped."""
    request = Request(sequence=1, command=Command.WRITE, address=0x7D, data=(0x12185678,))
    whole = list(request.encode())
    assert whole.count(0x7D) == 2  # escapes, too
    cases = [whole[:at] for at in range(len(whole))]
    for at in range(len(whole)):
        cases.append(whole[:at] + whole[at + 1 :])
        cases += [[*whole[:at], byte, *whole[at + 1 :]] for byte in range(256)]
        cases += [[*whole[:at], byte, *whole[at:]] for byte in range(256)]
    for first, second in combinations(range(8 * len(whole)), 2):
        case = list(whole)
        case[first // 8] ^= 1 << first % 8
        case[second // 8] ^= 1 << second % 8
        cases.append(case)
    sync = Request(sequence=0, command=Command.SYNC).encode()
    stream = [item for case in cases for item in (*sync, *case, FLAG)]
    model = Model()
    model.take(stream)
    assert simulate(stream) == (model.sent, model.written)
    assert set(model.written) == {(0x7D, 0x12185678)}
