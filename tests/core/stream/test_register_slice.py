# amaranth: UnusedElaboratable=no
"""RegisterSlice beside the FIFO of amaranth: the same in every cycle."""

from __future__ import annotations

import random

import pytest
from amaranth.lib.fifo import SyncFIFO
from core.harness import Bench

from lbq_hw.core.stream.register_slice import RegisterSlice


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("rates", [(0.9, 0.2), (0.2, 0.9), (0.5, 0.5), (1.0, 1.0)], ids=str)
def test_every_cycle_is_that_of_the_fifo_of_amaranth(rates: tuple[float, float], far: bool) -> None:
    source = random.Random(f"{rates}")
    script = [
        {
            "valid": int(source.random() < rates[0]),
            "payload": source.getrandbits(8),
            "ready": int(source.random() < rates[1]),
        }
        for _ in range(300)
    ]
    script[0]["valid"] = 0  # a slice that is far is not ready in the first cycle
    places, queue = RegisterSlice(8, far=far), SyncFIFO(width=8, depth=2)
    given = (places.i.valid, places.i.payload, places.o.ready)
    shown = (places.i.ready, places.o.valid, places.o.payload)
    found = watch(places, given, shown, script)
    assert found[0] == (not far, 0, 0)
    given, shown = (queue.w_en, queue.w_data, queue.r_en), (queue.w_rdy, queue.r_rdy, queue.r_data)
    assert found[1:] == watch(queue, given, shown, script)[1:]


def watch(block, given, shown, script: list[dict]) -> list[tuple[int, int, int]]:
    """In each cycle: whether it takes, whether it offers, and what, or 0."""
    bench = Bench(block)
    bench.script(dict(zip(script[0], given, strict=True)), script)
    seen = bench.probe(**dict(zip(("takes", "offers", "what"), shown, strict=True)))
    bench.run(extra=1)
    cycles = zip(seen["takes"], seen["offers"], seen["what"], strict=True)
    return [(takes, offers, what * offers) for takes, offers, what in cycles]
