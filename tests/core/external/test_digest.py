# amaranth: UnusedElaboratable=no
"""Digest against zlib, and cycle by cycle."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import pytest
from core.harness import Bench, ones
from hypothesis import given, settings
from hypothesis import strategies as st

from lbq_hw.core.external.digest import Digest
from lbq_hw.isa import regions


class Slices:
    """Answers the digest's requests: each after `delay` cycles, drawn where there is a seed."""

    def __init__(self, digest: Digest, words: dict[int, int], seed: int | None = None) -> None:
        self.digest, self.words = digest, words
        self.source = None if seed is None else random.Random(seed)
        self.samples = [digest.request.valid, digest.request.payload]
        self.asked: list[tuple[int, int]] = []
        self.came: list[int] = []
        self.ready, self.left, self.word = True, 0, 0
        self.done = True

    def set(self, ctx: Any) -> None:
        self.ready = self.source is None or self.source.random() < 0.5
        ctx.set(self.digest.request.ready, self.ready)
        ctx.set(self.digest.answer.valid, self.left == 1)
        ctx.set(self.digest.answer.payload, self.word if self.left == 1 else 0xDEADBEEF)

    def see(self, cycle: int, valid: int, address: int) -> None:
        if self.left == 1:
            self.came.append(cycle)
        self.left = max(self.left - 1, 0)
        if valid and self.ready:
            self.asked.append((cycle, address))
            self.word = self.words[address]
            self.left = 1 if self.source is None else self.source.randrange(1, 6)


def run(
    words: dict[int, int], first: int, count: int, *, seed: int | None = None
) -> tuple[Slices, dict[str, list[int]]]:
    digest = Digest()
    bench = Bench(digest)
    slices = bench.add(Slices(digest, words, seed))
    signals = {name: getattr(digest, name) for name in ("start", "first", "slices")}
    script: list[dict[str, int]] = [{}, {"start": 1, "first": first, "slices": count}]
    bench.script(signals, script + [{}] * (count * 16 + 8))
    seen = bench.probe(busy=digest.busy, crc=digest.crc)
    bench.run()
    return slices, seen


def crc(words: list[int]) -> int:
    return zlib.crc32(struct.pack(f"<{len(words)}I", *words))


@settings(max_examples=25)
@given(
    words=st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=12),
    first=st.integers(0, regions.MEMORY_SLICES - 1),
    seed=st.integers(0, 1000),
)
def test_it_is_the_crc_of_zlib_whatever_the_memory_takes(
    words: list[int], first: int, seed: int
) -> None:
    places = [(first + i) % regions.MEMORY_SLICES for i in range(len(words))]
    slices, seen = run(dict(zip(places, words, strict=True)), first, len(words), seed=seed)
    assert [address for _, address in slices.asked] == places
    assert seen["busy"][-1] == 0
    assert seen["crc"][-1] == crc(words)


def test_a_slice_takes_six_cycles_where_the_memory_takes_one() -> None:
    words = [1, 0xFFFFFFFF, 0x12345678]
    slices, seen = run(dict(enumerate(words)), 0, 3)
    start = 1
    assert [cycle for cycle, _ in slices.asked] == [start + 1, start + 7, start + 13]
    assert slices.came == [start + 2, start + 8, start + 14]
    # The bytes of the last slice take the four cycles after it came.
    assert ones(seen["busy"]) == list(range(start + 1, start + 19))
    assert seen["crc"][start + 19] == crc(words)
    assert seen["crc"][start + 18] != crc(words)


def test_a_digest_of_nothing_is_never_busy() -> None:
    slices, seen = run({}, 5, 0)
    assert not slices.asked
    assert not any(seen["busy"])
    assert seen["crc"][-1] == 0


@pytest.mark.parametrize("count", [1, 2])
def test_a_new_digest_forgets_the_one_before(count: int) -> None:
    digest = Digest()
    bench = Bench(digest)
    words = {7: 0xCAFE, 8: 0xBABE}
    bench.add(Slices(digest, words))
    begin = {"start": 1, "first": 7, "slices": count}
    signals = {name: getattr(digest, name) for name in ("start", "first", "slices")}
    bench.script(signals, [begin, *[{}] * 20, begin, *[{}] * 20])
    seen = bench.probe(crc=digest.crc)
    bench.run()
    assert seen["crc"][20] == seen["crc"][-1] == crc(list(words.values())[:count])
