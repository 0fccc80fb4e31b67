"""A model of Scanner that makes events bit by bit, and random requests for it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from lbq_hw.config import largest
from lbq_hw.core.payload import ScanKind

END = {"kind": ScanKind.END, "end": 1}


def spots(request: dict, words: list[int], sizes: dict) -> list[list[int]]:
    """The set bits in range of each word of a request, as weight rows or lanes, in order."""
    found = []
    for index in range(sizes["summary"]):
        bits = words[request["span"] * sizes["summary"] + index]
        if not (request["want"] >> index & 1 and bits):
            continue
        whole = request["kind"] is ScanKind.IDENTITY
        low = request["lo"] if whole or (request["lo_en"] and request["lo_at"] == index) else 0
        high = (
            request["hi"]
            if whole or (request["hi_en"] and request["hi_at"] == index)
            else sizes["word"] - 1
        )
        taken = [bit for bit in range(low, high + 1) if bits >> bit & 1]
        if request["kind"] is ScanKind.IDENTITY:
            found.append([bit - low for bit in taken])
        else:
            span = 1 << (sizes["rows"] - 1).bit_length()
            start = request["row"] + index * sizes["word"]
            found.append([(start + bit) % span for bit in taken])
    return found


def pairs_of(rows: list[int]) -> list[tuple[int | None, int | None]]:
    """Rows in pairs of an even and an odd row; even rows keep their order, and so do odd rows."""
    even, odd = ([row for row in rows if row % 2 == part] for part in range(2))
    return list(zip_longest(even, odd))


def opened(event: dict) -> dict:
    """An event of a scanner in the form of `golden`: with only the rows that it adds."""
    if "adds" not in event:
        return event | {"row": event["row"] if event["mask"] else None}
    halves, adds = event["rows"], event["adds"] if event["mask"] else 0
    rows = tuple(2 * half + i if adds >> i & 1 else None for i, half in enumerate(halves))
    rest = {name: value for name, value in event.items() if name not in ("rows", "adds")}
    return {"row": rows if adds else None, **rest}


def golden(requests: list[dict], words: list[int], sizes: dict) -> list[dict]:
    """The events of the requests; a null event has no row. With pairs, an event has two rows, and
    a row that is not added is None.

    A scanner without identities has one mask bit for all lanes.
    """
    every = (1 << sizes["lanes"]) - 1 if sizes.get("identities", True) else 1
    events: list[dict] = []
    level: int | None = None  # exponent of the last event of the step

    def emit(exponent: int, row: Any, mask: int, end: int = 0) -> None:
        nonlocal level
        for _ in range(level - exponent - 1 if level is not None else 0):
            events.append({"row": None, "mask": 0, "clear": 0, "double": 1, "end": 0})
        first = level is None
        double = int(not first and level != exponent)
        events.append({"row": row, "mask": mask, "clear": +first, "double": double, "end": end})
        level = exponent

    for request in requests:
        found = [] if request["kind"] is ScanKind.END else spots(request, words, sizes)
        for places in found:
            if request["kind"] is ScanKind.CONV:
                for row in pairs_of(places) if sizes.get("pairs") else places:
                    emit(request["exponent"], row, every)
            elif places:
                [row] = pairs_of([request["row"]]) if sizes.get("pairs") else [request["row"]]
                emit(request["exponent"], row, sum(1 << lane for lane in places))
        if not request["end"]:
            continue
        if found and found[-1] and level == 0:
            events[-1]["end"] = 1
        else:
            emit(0, None, 0, end=1)
        level = None
    return events


def conv(**members: Any) -> dict:
    """A request for all of span 0, unless `members` say otherwise."""
    request = {"kind": ScanKind.CONV, "end": 0, "span": 0, "want": -1, "lo": 0, "hi": 0}
    request |= {
        "lo_en": 0,
        "lo_at": 0,
        "hi_en": 0,
        "hi_at": 0,
        "row": 0,
        "exponent": 0,
    }
    return request | members


def random_words(source: random.Random, sizes: dict) -> list[int]:
    """Words in stretches of one density each: mostly empty or sparse, some denser or full."""
    words: list[int] = []
    while len(words) < sizes["words"]:
        density = source.choice((0, 0.02, 0.02, 0.2, 1))
        for _ in range(source.randrange(1, 2 * sizes["summary"] + 2)):
            words.append(sum((source.random() < density) << i for i in range(sizes["word"])))
    return words[: sizes["words"]]


def random_step(source: random.Random, sizes: dict) -> Iterator[dict]:
    """Requests with exponents that fall by 0, 1 or more; the last one has the end, or an END
    follows.
    """
    word, summary = sizes["word"], sizes["summary"]
    highest = (1 << sizes.get("exponent_bits", 5)) - 1
    exponent = min(source.choice((0, 3, 17, largest("exponents"))), highest)
    count = source.randrange(8)
    alone = source.random() < 0.3 or not count
    for number in range(count):
        exponent = max(0, exponent - source.choice((0, 0, 0, 1, 2, 9)))
        low, high = sorted(source.randrange(word) for _ in range(2))
        request = conv(
            span=source.randrange(sizes["words"] // summary),
            want=source.choice((source.getrandbits(summary), (1 << summary) - 1)),
            lo=low,
            hi=high,
            lo_en=source.randrange(2),
            lo_at=source.randrange(summary),
            hi_en=source.randrange(2),
            hi_at=source.randrange(summary),
            row=source.randrange(1 << (sizes["rows"] - 1).bit_length()),
            exponent=exponent,
            end=int(number == count - 1 and not alone),
        )
        if source.random() < 0.3 and sizes.get("identities", True):
            request["kind"] = ScanKind.IDENTITY
            request["want"] = 1 << source.randrange(summary)
            request["lo"] = low - low % sizes.get("granule", 1)
            request["hi"] = min(high, request["lo"] + sizes["lanes"] - 1)
        yield request
    if alone:
        yield END


def random_work(
    source: random.Random, sizes: dict, events: int = 250
) -> tuple[list[dict], list[int]]:
    """Steps of requests for about `events` events, and the words to scan."""
    words = random_words(source, sizes)
    requests: list[dict] = []
    while len(golden(requests, words, sizes)) < events:
        requests += random_step(source, sizes)
    return requests, words
