# amaranth: UnusedElaboratable=no
"""The frames of the link, byte by byte, against zlib's CRC and `link_model`."""

from __future__ import annotations

import random
import zlib
from typing import Any

import pytest
from core.harness import Bench, ones
from link_model import BROKEN, FLAG, stuffed

from lbq_hw.core.host.frames import FrameReceiver, FrameTransmitter, SerialCrc
from lbq_hw.isa.link import FRAME_WORDS
from sim.models.traffic import Stall, never, stalls

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
    expected: dict[int, tuple[int, int]] = {}  # CRC and match, by cycle
    lasts = []
    for body in frames:
        script.append({"clear": 1})
        whole = body + crc_bytes(body)
        for number, byte in enumerate(whole, 1):
            script += [{"run": 1, "byte": byte}] * 8
            lasts.append(len(script) - 1)
            expected[len(script)] = (zlib.crc32(whole[:number]), int(number == len(whole)))
            script += [{"byte": 0xFF}] * pause
    names = ("clear", "run", "byte")
    bench.script({name: getattr(block, name) for name in names}, script)
    seen = bench.probe(last=block.last, crc=block.crc, match=block.match)
    bench.run(extra=1)
    assert ones(seen["last"]) == lasts
    assert {c: (seen["crc"][c], seen["match"][c]) for c in expected} == expected


def test_a_drain_brings_the_bytes_of_the_crc_to_its_lowest_bits() -> None:
    block = SerialCrc()
    bench = Bench(block)
    body = b"\x12\x7e"
    script = [{"clear": 1}] + [{"run": 1, "byte": byte} for byte in body for _ in range(8)]
    first = len(script)
    script += [{"run": 1, "drain": 1}] * 32
    names = ("clear", "run", "byte", "drain")
    bench.script({name: getattr(block, name) for name in names}, script)
    seen = bench.probe(crc=block.crc)
    bench.run()
    found = [seen["crc"][first + 8 * number] & 0xFF for number in range(4)]
    assert bytes(found) == crc_bytes(body)


class Reader:
    """Reads every frame, byte by byte, some cycles after it is there, then frees it."""

    def __init__(self, block: FrameReceiver, wait: int = 0) -> None:
        self.block, self.wait = block, wait
        self.samples = [block.full, block.words, block.byte]
        self.done = True
        self.index: int | None = None
        self.left = 0
        self.free = False
        self.rises: list[int] = []
        self.frees: list[int] = []
        self.frames: list[tuple[int, bytes]] = []

    def set(self, ctx: Any) -> None:
        ctx.set(self.block.index, 0 if self.index is None else self.index)
        ctx.set(self.block.free, self.free)

    def see(self, cycle: int, full: int, words: int, byte: int) -> None:
        if self.free:
            self.frees.append(cycle)
            self.free, self.index = False, None
            return
        if self.index is None:
            if full:
                self.rises.append(cycle)
                self.index, self.got, self.words, self.left = 2, [], words, self.wait
            return
        assert full
        if self.left:
            self.left -= 1
            return
        size = 6 + 4 * self.words
        if self.index > 2 and len(self.got) < size:  # the byte of the index in the cycle before
            self.got.append(byte)
        if len(self.got) < size:
            self.index += 1
        else:
            self.frames.append((self.words, bytes(self.got)))
            self.free = True


def receive(
    stream: list[int], *, stall: Stall = never, wait: int = 0, lost_at: int | None = None
) -> tuple[Any, Reader, list[int]]:
    block = FrameReceiver()
    bench = Bench(block)
    items = [{"data": item & 0xFF, "broken": int(item >= BROKEN)} for item in stream]
    driver = bench.drive(block.i, items, stall=stall)
    reader = bench.add(Reader(block, wait))
    if lost_at is not None:
        bench.script({"lost": block.lost}, [{}] * lost_at + [{"lost": 1}])
    full = bench.probe(full=block.full)["full"]
    bench.run(extra=350 + wait)
    return driver, reader, full


def bodies(seed: int, *words: int) -> list[bytes]:
    """Bodies of frames of so many data words, with many bytes to escape."""
    source = random.Random(seed)
    pool = [0x7E, 0x7D, 0x5E, *range(0, 256, 37)]
    return [bytes(source.choice(pool) for _ in range(6 + 4 * count)) for count in words]


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_frames_are_read_as_they_were_sent(rate: float) -> None:
    sent = bodies(1, 0, 1, 5, 0, 2, FRAME_WORDS)
    stream = [byte for body in sent for byte in (*stuffed(body), *[FLAG] * 30)]
    _, reader, _ = receive(stream, stall=stalls(1, rate))
    assert reader.frames == [((len(body) - 6) // 4, body) for body in sent]


def test_a_byte_takes_eight_cycles_a_flag_or_an_escape_one_and_full_rises_after_the_flag() -> None:
    [body] = bodies(2, 3)
    stream = list(stuffed(body))
    assert ESCAPE in stream
    driver, reader, full = receive(stream)
    cycle, expected = driver.cycles[0] - (0 if stream[0] == ESCAPE else 7), []
    for byte in stream:
        cycle += 1 if byte in (FLAG, ESCAPE) else 8
        expected.append(cycle - 1)
    assert driver.cycles == expected
    assert ones(full) == list(range(expected[-1] + 1, reader.frees[0] + 1))


def wrong(kind: str, body: bytes) -> list[int]:
    """A frame that must be dropped."""
    frame = list(stuffed(body))
    if kind == "crc":
        frame[1] ^= 1
    elif kind == "broken":
        frame[3] |= BROKEN
    elif kind == "escape at the end":
        frame[-1:] = [ESCAPE, FLAG]
    elif kind == "too short":
        frame = list(stuffed(body[:2]))
    elif kind == "not whole words":
        frame = list(stuffed(body + b"\0"))
    else:
        frame = list(stuffed(bytes(6 + 4 * (FRAME_WORDS + 1))))
    return frame


@pytest.mark.parametrize(
    "kind", ["crc", "broken", "escape at the end", "too short", "not whole words", "too long"]
)
def test_a_wrong_frame_is_dropped_and_the_next_is_not(kind: str) -> None:
    first, second = b"\x01\x02\x03\x04\x05\x06", b"\x07\x08\x09\x0a\x0b\x0c"
    _, reader, _ = receive([*wrong(kind, first), *stuffed(second)])
    assert reader.frames == [(0, second)]


def test_a_frame_of_which_a_byte_is_lost_is_dropped() -> None:
    first, second = b"\x01\x02\x03\x04\x05\x06", b"\x07\x08\x09\x0a\x0b\x0c"
    _, reader, _ = receive([*stuffed(first), *stuffed(second)], lost_at=20)
    assert reader.frames == [(0, second)]


def test_a_frame_that_is_complete_while_another_is_there_is_dropped() -> None:
    first, second, third = bodies(4, 1, 1, 1)
    stream = [*stuffed(first), *stuffed(second), *[FLAG] * 400, *stuffed(third)]
    _, reader, _ = receive(stream, wait=250)
    assert [body for _, body in reader.frames] == [first, third]


def transmit(frames: list[bytes], i_stall: Stall, o_stall: Stall) -> tuple[Any, Any, list[int]]:
    block = FrameTransmitter()
    bench = Bench(block)
    items = [
        {"data": byte, "last": int(number == len(body) - 1)}
        for body in frames
        for number, byte in enumerate(body)
    ]
    driver = bench.drive(block.i, items, stall=i_stall)
    sent = bench.monitor(block.o, len(b"".join(map(stuffed, frames))), stall=o_stall)
    busy = bench.probe(busy=block.busy)["busy"]
    bench.run(extra=3)
    return driver, sent, busy


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_frames_are_escaped_and_end_in_their_crc_and_a_flag(rate: float) -> None:
    frames = bodies(5, 0, 2, 0, 7)
    _, sent, _ = transmit(frames, stalls(1, rate), stalls(2, rate))
    assert bytes(sent.payloads) == b"".join(map(stuffed, frames))


def test_a_byte_is_offered_nine_cycles_after_it_was_taken() -> None:
    [body] = bodies(6, 2)
    driver, sent, busy = transmit([body], never, never)
    wire = stuffed(body)
    assert ESCAPE in wire
    cycle, expected = driver.cycles[0] + 9, []
    for byte in wire:  # after an escape, the byte itself follows at once
        expected.append(cycle)
        cycle += 1 if byte == ESCAPE else 10
    assert sent.cycles == expected
    plain = [at for at, byte, before in zip(sent.cycles, wire, b"\0" + wire, strict=False)
             if before != ESCAPE]  # fmt: skip
    assert driver.cycles == [at - 9 for at in plain[: len(body)]]
    assert ones(busy) == list(range(driver.cycles[0] + 1, sent.cycles[-1] + 1))
