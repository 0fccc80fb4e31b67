"""A model of PlaneMemory as lists of words and flags, and random writes for it."""

from __future__ import annotations

import random


def golden(writes: list[dict], *, words: int, word: int, granule: int) -> tuple[list, list]:
    """Words and flags after the writes."""
    data = [0] * words
    flags = [0] * words
    for write in writes:
        for bit in range(word):
            if write["enable"] >> (bit // granule) & 1:
                keep = data[write["addr"]] & ~(1 << bit)
                data[write["addr"]] = keep | write["data"] & (1 << bit)
        lanes = ((1 << granule) - 1, range(word // granule))
        seen = any(
            write["enable"] >> i & 1 and write["data"] >> i * granule & lanes[0] for i in lanes[1]
        )
        flags[write["addr"]] = int(seen or (flags[write["addr"]] and not write["first"]))
    return data, flags


def random_writes(source: random.Random, count: int, *, words: int, word: int, granule: int):
    """Writes that often stay within one summary word, and often write zeros."""
    addr = 0
    for _ in range(count):
        addr = source.choice((addr, addr ^ 1, source.randrange(words)))
        yield {
            "addr": addr,
            "data": source.choice((0, source.getrandbits(word), 1 << source.randrange(word))),
            "enable": source.choice(
                (source.getrandbits(word // granule), -1 % (1 << word // granule))
            ),
            "first": source.randrange(2),
        }
