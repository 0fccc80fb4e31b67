"""Work for the stages of the scanner: sizes, requests, words, and what each stage makes of them."""

from __future__ import annotations

import random
from typing import Any

from core.harness import Bench

from lbq_hw.config import address_bits
from lbq_hw.core.payload import Event, PairEvent, ScanKind, ScanRequest
from lbq_hw.core.scan.fetch import Word
from lbq_hw.sim.models.scanner import END, random_step, random_words
from lbq_hw.sim.models.traffic import never, stalls

SIZES = [
    {"lanes": 4, "word": 8, "summary": 4, "words": 32, "rows": 64},
    {"lanes": 8, "word": 16, "summary": 8, "words": 64, "rows": 100},
    {"lanes": 16, "word": 16, "summary": 1, "words": 24, "rows": 1 << 12},
    {"lanes": 8, "word": 16, "summary": 4, "words": 64, "rows": 512, "exponent_bits": 2}
    | {"identities": False},
]
ALONE = {"bits": 0, "exponent": 1, "end": 1, "many": 0}
"""A `Word` that is the end of a step and no more."""
RATES = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.4, 0.4)]


def layouts(
    sizes: dict, *, counted: bool = False, pairs: bool = False
) -> tuple[ScanRequest, Word, Event]:
    word, row_bits = sizes["word"], address_bits(sizes["rows"])
    span_bits = address_bits(sizes["words"] // sizes["summary"])
    exponent_bits, identities = sizes.get("exponent_bits", 5), sizes.get("identities", True)
    request = ScanRequest(
        word=word,
        summary=sizes["summary"],
        span_bits=span_bits,
        row_bits=row_bits,
        exponent_bits=exponent_bits,
    )
    entry = Word(
        word=word,
        row_bits=row_bits,
        exponent_bits=exponent_bits,
        identities=identities,
        counts=Word.PAIRS if pairs else ("count",) if counted else (),
    )
    kind = PairEvent if pairs else Event
    event = kind(lanes=sizes["lanes"], row_bits=row_bits, masks=identities)
    return request, entry, event


def work(sizes: dict, seed: int) -> tuple[list[dict], list[int], list[int]]:
    """Requests, words, and a summary word per span."""
    source = random.Random(seed)
    words, summary = random_words(source, sizes), sizes["summary"]
    requests = [request for _ in range(12) for request in random_step(source, sizes)]
    flags = [
        sum((word != 0) << i for i, word in enumerate(words[span : span + summary]))
        for span in range(0, len(words), summary)
    ]
    return requests, words, flags


def stream(
    block: Any,
    port: Any,
    store: list[int],
    payloads: list[dict],
    rates: tuple[float, float],
    *,
    late: int = 1,
) -> tuple[Any, Any, Any]:
    """Drive a stage: its driver, its monitor and, if it has a memory, the memory, which answers
    `late` cycles after a read.
    """
    bench = Bench(block)
    reads = None if port is None else bench.store(port, store, late=late)
    i_stall, o_stall = (stalls(seed, rate) if rate else never for seed, rate in enumerate(rates))
    driver = bench.drive(block.i, payloads, stall=i_stall)
    taken = bench.monitor(block.o, stall=o_stall)
    bench.run(extra=200)
    return driver, taken, reads


def flagged(requests: list[dict], flags: list[int]) -> list[dict]:
    """Requests with the wanted words that are not zero; one without is END or None."""
    found = []
    for request in requests:
        want = 0 if request is END else request["want"] & flags[request["span"]]
        kept = END if request["end"] else None
        found.append(dict(request, want=want) if want else kept)
    return found


def entries(request: dict, words: list[int], sizes: dict) -> list[dict]:
    """A `Word` for each word that a request wants, with no bits where none is in range.

    The last one of a step has its end.
    """
    if request is END:
        return [dict(ALONE)]
    identity = request["kind"] is ScanKind.IDENTITY
    found = []
    for index in range(sizes["summary"]):
        if not request["want"] >> index & 1:
            continue
        low, high = 0, sizes["word"] - 1
        if identity or (request["lo_en"] and request["lo_at"] == index):
            low = request["lo"]
        if identity or (request["hi_en"] and request["hi_at"] == index):
            high = request["hi"]
        word = words[request["span"] * sizes["summary"] + index]
        kept = sum(1 << bit for bit in range(low, high + 1) if word >> bit & 1)
        row = request["row"] + (0 if identity else index * sizes["word"])
        lanes = {"lo": request["lo"], "identity": int(identity)}
        end = request["end"] and not request["want"] >> index + 1
        many = (not identity and kept.bit_count() > 1) or (kept and end and request["exponent"])
        found.append(
            {
                "bits": kept,
                "row": row % (1 << address_bits(sizes["rows"])),
                "exponent": request["exponent"] if kept else 1,
                "end": int(end),
                "many": int(bool(many)),
            }
            | (lanes if sizes.get("identities", True) else {})
        )
    return found


def spans(sizes: dict, seed: int) -> tuple[list[dict], list[int], list[list[dict]]]:
    """Requests as they come to the words, the words, and the entries of each request."""
    requests, words, flags = work(sizes, seed)
    left = [request for request in flagged(requests, flags) if request is not None]
    return left, words, [entries(request, words, sizes) for request in left]


def full(parts: list[list[dict]]) -> list[dict]:
    return [entry for part in parts for entry in part if entry["end"] or entry["bits"]]


def counted(entries: list[dict]) -> list[dict]:
    """The same, each with the number of its bits."""
    return [entry | {"count": entry["bits"].bit_count()} for entry in entries]


def paired(entries: list[dict]) -> list[dict]:
    """The same, each with the numbers of its even and odd bits; several events may be one."""
    found = []
    for entry in entries:
        even, odd = halves(entry["bits"])
        more = even > 1 or odd > 1
        many = more and not entry.get("identity")
        many |= entry["bits"] > 0 and entry["end"] > 0 and entry["exponent"] > 0
        found.append(entry | {"even": even, "odd": odd, "many": int(many)})
    return found


def halves(bits: int) -> tuple[int, int]:
    """How many even and odd bits are set."""
    odd = sum(bits >> place & 1 for place in range(1, bits.bit_length(), 2))
    return bits.bit_count() - odd, odd
