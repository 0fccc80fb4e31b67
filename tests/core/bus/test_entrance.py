# amaranth: UnusedElaboratable=no
"""Requests of a bus reach the core or the bus side's registers, and the interrupt rises."""

from __future__ import annotations

from core.bus.fake import FakePort, Requester
from core.harness import Bench

from lbq_hw.config import CoreConfig
from lbq_hw.core.bus.entrance import Entrance
from lbq_hw.isa import bus, regions
from lbq_hw.isa.regions import Region
from lbq_hw.sim.models.traffic import stalls

CONFIG = CoreConfig()


def own(name: str) -> int:
    return bus.register_address(CONFIG, name) >> bus.BYTE_BITS


def play(requests, *, busy=0, feeding=1, rate=0.0):
    block = Entrance(CONFIG)
    bench = Bench(block)
    port = bench.add(FakePort(block.port, stall=stalls(1, rate)))
    user = bench.add(Requester(block.request, requests, stall=stalls(2, rate)))
    words = bench.monitor(block.words, None, stall=stalls(3, rate))
    bench.hold((block.feeding, feeding))
    bench.script({"busy": block.busy, "input_done": block.input_done},
                 [{"busy": busy, "input_done": busy}] * 3)  # fmt: skip
    history = bench.probe(irq=block.irq, clear=block.clear, by_words=block.by_words)
    bench.run(extra=5)
    return user.answers, port.taken, words.payloads, history


def test_addresses_of_the_core_are_those_of_its_port() -> None:
    places = [regions.address(CONFIG, region, 1, 0) for region in Region if region < Region.MEMORY]
    requests = [
        (n % 2, bus.address(CONFIG, place) >> bus.BYTE_BITS, n) for n, place in enumerate(places)
    ]
    answers, taken, _, _ = play(requests, rate=0.3)
    assert taken == [(n % 2, place, n if n % 2 else 0) for n, place in enumerate(places)]
    assert answers == [(0, 0 if n % 2 else ~place & 0xFFFF_FFFF) for n, place in enumerate(places)]


def test_pixels_are_taken_only_from_the_chosen_source() -> None:
    requests = [(1, own("pixels"), 1), (1, own("source"), 1), (1, own("pixels"), 2),
                (1, own("pixels"), 3), (0, own("source"), 0), (0, own("pixels"), 0)]  # fmt: skip
    answers, taken, words, history = play(requests, rate=0.3)
    assert answers == [(1, 0), (0, 0), (0, 0), (0, 0), (0, 1), (1, 0)]
    assert words == [2, 3]
    assert taken == []
    assert sum(history["clear"]) == 1


def test_pixels_are_refused_while_a_run_is_under_way() -> None:
    answers, _, words, _ = play([(1, own("source"), 1), (1, own("pixels"), 2)], feeding=0)
    assert answers == [(0, 0), (1, 0)]
    assert words == []


def test_the_interrupt_rises_at_the_end_of_a_run_and_is_cleared() -> None:
    requests = [(1, own("interrupt"), 1), (0, own("interrupt"), 0), (0, own("ended"), 0),
                (1, own("ended"), 0), (0, own("ended"), 0), (1, own("ended"), 1),
                (0, own("ended"), 0), (0, own("inputs"), 0)]  # fmt: skip
    answers, _, _, history = play(requests, busy=1)
    assert answers == [(0, 0), (0, 1), (0, 1), (0, 0), (0, 1), (0, 0), (0, 0), (0, 3)]
    assert 0 < sum(history["irq"]) < len(history["irq"])
    assert history["irq"][-1] == 0


def test_what_does_not_exist_is_refused() -> None:
    beyond = own("ended") + len(bus.REGISTERS)
    answers, taken, _, _ = play([(0, beyond, 0), (1, beyond, 0), (1, own("inputs"), 1)])
    assert answers == [(1, 0)] * 3
    assert taken == []
