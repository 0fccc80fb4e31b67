# amaranth: UnusedElaboratable=no
"""The queue of pages: what it offers, and when."""

from __future__ import annotations

import random

from core.harness import Bench

from lbq_hw.core.external.page_queue import PageQueue
from lbq_hw.sim.models.traffic import stalls

WORDS = 8


def test_words_are_offered_three_cycles_after_they_are_shown_whenever_they_were_stored() -> None:
    for early in (0, 1, 5):
        queue = PageQueue(bits=16, words=WORDS)
        bench = Bench(queue)
        steps: list[dict[str, int]] = [{} for _ in range(40)]
        for n in range(WORDS):
            steps[3 + n] = {"valid": 1, "word": 100 + n, "last": int(n == WORDS - 1)}
        for n in range(WORDS):
            steps[3 + early + n] = steps[3 + early + n] | {"show": 1}
        store = queue.store
        signals = {"valid": store.valid, "word": store.word, "last": store.last, "show": queue.show}
        bench.script(signals, steps)
        monitor = bench.monitor(queue.o, WORDS)
        history = bench.probe(freed=queue.freed)
        bench.run()
        assert monitor.payloads == list(range(100, 100 + WORDS))
        assert monitor.cycles == [3 + early + n + 3 for n in range(WORDS)]
        freed = [cycle for cycle, value in enumerate(history["freed"]) if value]
        assert freed == [monitor.cycles[-1]]


def test_two_pages_wait_for_a_consumer_that_takes_when_it_likes() -> None:
    source = random.Random(3)
    reads = [source.randint(1, WORDS) for _ in range(20)]
    queue = PageQueue(bits=16, words=WORDS)
    bench = Bench(queue)
    expected, last = [], []
    for read in reads:
        expected += [source.getrandbits(16) for _ in range(read)]
        last += [0] * (read - 1) + [1]

    class Source:
        """A read when there is room for a page."""

        samples = (queue.freed,)
        done = False

        def __init__(self) -> None:
            self.held = self.sent = self.left = 0
            self.freed: list[int] = []
            self.reads = iter(reads)

        def set(self, ctx) -> None:
            if not self.left and self.held < 2:
                self.left = next(self.reads, 0)
                self.held += self.left > 0
            valid = self.left > 0
            ctx.set(queue.store.valid, valid)
            ctx.set(queue.show, valid)
            if valid:
                ctx.set(queue.store.word, expected[self.sent])
                ctx.set(queue.store.last, last[self.sent])
                self.sent, self.left = self.sent + 1, self.left - 1
            self.done = self.sent == len(expected)

        def see(self, cycle, freed) -> None:
            del cycle
            self.held -= freed
            self.freed.append(freed)

    sent = bench.add(Source())
    monitor = bench.monitor(queue.o, len(expected), stall=stalls(5, 0.4))
    bench.run()
    assert monitor.payloads == expected
    ends = [n for n, end in enumerate(last) if end]
    freed = [cycle for cycle, value in enumerate(sent.freed) if value]
    assert freed == [monitor.cycles[n] for n in ends]
