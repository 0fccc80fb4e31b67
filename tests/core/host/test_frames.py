# amaranth: UnusedElaboratable=no
"""The frames of the link, byte by byte, against zlib's CRC and `link_model`."""

from __future__ import annotations

import random
import zlib
from typing import Any

import pytest
from core.harness import Bench, ones
from link_model import BROKEN, FLAG, stuffed

from lbq_hw.core.host.frames import HEAD_INDEX, FrameEscapes, FrameReceiver, SerialCrc
from lbq_hw.isa.link import FRAME_WORDS
from lbq_hw.sim.models.traffic import Stall, never, stalls

ESCAPE = 0x7D


def crc_bytes(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(4, "little")


@pytest.mark.parametrize("pause", [0, 1])
def test_the_crc_is_zlibs_after_eight_cycles_a_byte(pause: int) -> None:
    source = random.Random(3)
    frames = [source.randbytes(size) for size in (1, 6, 10)]
    block = SerialCrc()
    bench = Bench(block)
    script: list[dict] = []
    expected: dict[int, int] = {}  # the CRC, by cycle
    lasts = []
    for body in frames:
        script += [{"run": 1, "byte": 0x55}] * 3  # of a frame that ends within a byte
        script.append({"clear": 1})
        for number, byte in enumerate(body, 1):
            script += [{"run": 1, "byte": byte}] * 8
            lasts.append(len(script) - 1)
            expected[len(script)] = zlib.crc32(body[:number])
            script += [{"byte": 0xFF}] * pause
    names = ("clear", "run", "byte")
    bench.script({name: getattr(block, name) for name in names}, script)
    seen = bench.probe(last=block.last, crc=block.crc)
    bench.run(extra=1)
    assert ones(seen["last"]) == lasts
    assert {cycle: seen["crc"][cycle] for cycle in expected} == expected


def test_a_drain_brings_the_bytes_of_the_crc_to_its_lowest_bits_and_compares_them() -> None:
    block = SerialCrc()
    bench = Bench(block)
    body = b"\x12\x7e"
    given = bytes(
        byte ^ wrong for byte, wrong in zip(crc_bytes(body), b"\0\x81\0\x04", strict=True)
    )
    script = [{"clear": 1}] + [{"run": 1, "byte": byte} for byte in body for _ in range(8)]
    first = len(script)
    script += [{"run": 1, "drain": 1, "byte": byte} for byte in given for _ in range(8)]
    names = ("clear", "run", "byte", "drain")
    bench.script({name: getattr(block, name) for name in names}, script)
    seen = bench.probe(crc=block.crc, differs=block.differs)
    bench.run()
    found = [seen["crc"][first + 8 * number] & 0xFF for number in range(4)]
    assert bytes(found) == crc_bytes(body)
    assert ones(seen["differs"][first : first + 32]) == [8, 15, 26]


class Reader:
    """Takes every frame some cycles after it is there, reads it byte by byte, then frees it."""

    def __init__(self, block: FrameReceiver, wait: int = 0) -> None:
        self.block, self.wait = block, wait
        self.samples = [block.full, block.frame_arrives, block.words, block.byte]
        self.done = True
        self.index: int | None = None
        self.left = wait
        self.take = False
        self.words = 0
        self.comes: list[int] = []
        self.takes: list[int] = []
        self.frames: list[tuple[int, bytes]] = []

    def set(self, ctx: Any) -> None:
        ctx.set(self.block.index, (HEAD_INDEX if self.index is None else self.index) % 256)
        ctx.set(self.block.take, self.take)
        ctx.set(self.block.kept, self.index is not None)

    def see(self, cycle: int, full: int, comes: int, words: int, byte: int) -> None:
        if comes:
            assert self.index is None
            self.comes.append(cycle)
            self.words, self.left = words, self.wait
        if self.take:
            self.takes.append(cycle)
            self.take = False
            if not comes:
                self.index, self.got = HEAD_INDEX, []
        elif self.index is None:
            if full and not comes:
                self.take = self.left == 0
                self.left -= 1
        else:
            size = 6 + 4 * self.words
            if self.index > HEAD_INDEX:  # the byte of the index in the cycle before
                self.got.append(byte)
            self.index += 1
            if len(self.got) == size:
                self.frames.append((self.words, bytes(self.got)))
                self.index, self.left = None, self.wait


def receive(
    stream: list[int], *, stall: Stall = never, wait: int = 0
) -> tuple[Any, Reader, list[int]]:
    block = FrameReceiver()
    bench = Bench(block)
    items = [{"data": item & 0xFF, "broken": int(item >= BROKEN)} for item in stream]
    driver = bench.drive(block.i, items, stall=stall)
    reader = bench.add(Reader(block, wait))
    full = bench.probe(full=block.full)["full"]
    bench.run(extra=350 + wait)
    return driver, reader, full


def bodies(seed: int, *words: int) -> list[bytes]:
    """Bodies of frames of so many data words, with many bytes to escape."""
    source = random.Random(seed)
    pool = [0x7E, 0x7D, 0x5E, 0x18, *range(0, 256, 37)]
    return [bytes(source.choice(pool) for _ in range(6 + 4 * count)) for count in words]


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_frames_are_read_as_they_were_sent(rate: float) -> None:
    sent = bodies(1, 0, 1, 5, 0, 2, FRAME_WORDS)
    stream = [byte for body in sent for byte in (*stuffed(body), *[FLAG] * 30)]
    _, reader, _ = receive(stream, stall=stalls(1, rate))
    assert reader.frames == [((len(body) - 6) // 4, body) for body in sent]


def test_any_byte_of_a_frame_may_be_escaped() -> None:
    """But 0x5E and 0x5D, which would become a flag and an escape."""
    body = bytes(byte for byte in range(240) if byte not in b"\x5e\x5d") + b"\x18" * 8
    stream = []
    for byte in body + crc_bytes(body):
        stream += [byte] if byte in b"\x5e\x5d" else [ESCAPE, byte ^ 0x20]
    _, reader, _ = receive([*stream, FLAG])
    assert reader.frames == [(FRAME_WORDS, body)]


def test_a_byte_is_taken_per_cycle_and_full_is_from_the_flag_to_the_take() -> None:
    [body] = bodies(2, 3)
    stream = list(stuffed(body))
    assert ESCAPE in stream
    driver, reader, full = receive(stream, wait=5)
    first = driver.cycles[0]
    assert driver.cycles == list(range(first, first + len(stream)))
    assert reader.comes == [driver.cycles[-1]]
    assert ones(full) == list(range(driver.cycles[-1] + 1, reader.takes[0] + 1))


def wrong(kind: str, body: bytes, words: int) -> list[int]:
    """A frame that must be dropped."""
    frame = list(stuffed(body))
    if kind == "broken":
        frame[3] |= BROKEN
    elif kind == "escape at the end":
        frame[-1:] = [ESCAPE, FLAG]
    elif kind == "too short":
        frame = list(stuffed(body[:2]))
    elif kind == "not whole words":
        frame = list(stuffed(body + b"\0"))
    else:
        frame = list(stuffed(bytes(6 + 4 * words)))
    return frame


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("broken", 0),
        ("escape at the end", 0),
        ("too short", 0),
        ("not whole words", 0),
        *(("too long", FRAME_WORDS + more) for more in (1, 2, 3, 4, 64, 128)),
    ],
)
def test_a_wrong_frame_is_dropped_and_the_next_is_not(kind: str, size: int) -> None:
    first, second = b"\x01\x02\x03\x04\x05\x06", b"\x07\x08\x09\x0a\x0b\x0c"
    _, reader, _ = receive([*wrong(kind, first, size), *stuffed(second)])
    assert reader.frames == [(0, second)]


def test_a_frame_that_is_complete_while_another_is_kept_is_dropped() -> None:
    first, second, third = bodies(4, FRAME_WORDS, 1, 1)
    stream = [*stuffed(first), *stuffed(second), *[FLAG] * 300, *stuffed(third)]
    _, reader, _ = receive(stream)
    assert [body for _, body in reader.frames] == [first, third]


@pytest.mark.parametrize("wait", range(12, 24))
def test_a_frame_that_was_not_taken_gives_way_to_the_next(wait: int) -> None:
    first, second = b"\x01\x02\x03\x04\x05\x06", b"\x07\x08\x09\x0a\x0b\x0c"
    _, reader, _ = receive([*stuffed(first), *stuffed(second)], wait=wait)
    assert reader.frames == [(0, second)]


def escape(frames: list[bytes], i_stall: Stall, o_stall: Stall) -> tuple[Any, Any]:
    block = FrameEscapes()
    bench = Bench(block)
    items = []
    for body in frames:
        items += [{"data": byte, "flag": 0} for byte in body + crc_bytes(body)]
        items.append({"data": 0, "flag": 1})
    driver = bench.drive(block.i, items, stall=i_stall)
    sent = bench.monitor(block.o, len(b"".join(map(stuffed, frames))), stall=o_stall)
    bench.run()
    return driver, sent


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_bytes_that_could_be_a_flag_are_escaped_and_a_flag_is_not(rate: float) -> None:
    frames = bodies(5, 0, 2, 0, 7)
    _, sent = escape(frames, stalls(1, rate), stalls(2, rate))
    assert bytes(sent.payloads) == b"".join(map(stuffed, frames))


def test_a_byte_leaves_in_the_cycle_in_which_it_is_taken_a_cycle_after_its_escape() -> None:
    [body] = bodies(6, 2)
    driver, sent = escape([body], never, never)
    wire = stuffed(body)
    assert ESCAPE in wire
    first = sent.cycles[0]
    assert sent.cycles == list(range(first, first + len(wire)))
    leaves = [at for at, byte in zip(sent.cycles, wire, strict=True) if byte != ESCAPE]
    assert driver.cycles == leaves
