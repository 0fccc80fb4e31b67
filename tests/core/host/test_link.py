# amaranth: UnusedElaboratable=no
"""The link, frame by frame; tests/sim/test_link_fuzz.py has the damage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect
from core.harness import Bench, ones

from lbq_hw.core.host.link import Link
from lbq_hw.host.frames import Replies, Reply, Request
from lbq_hw.isa import regions
from lbq_hw.isa.link import BAKED, Command, Status
from lbq_hw.isa.regions import Region

OK, SEQUENCE = Status.OK, Status.SEQUENCE


class Memory(wiring.Component):
    """A link with a port that has the timing of `HostPort` and answers a read with its address."""

    registers = 0
    address_bits = regions.SHIFT

    def __init__(self) -> None:
        self.link = Link(
            divisor=12, tag=0xABCD1234, address_bits=self.address_bits, registers=self.registers
        )
        super().__init__(
            {name: self.link.signature.members[name] for name in ("i", "o", "idle", "divisor")}
        )
        self.writes = Signal()
        self.address = Signal(32)
        self.data = Signal(32)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        m.submodules.link = link = self.link
        connect(m, wiring.flipped(self.i), link.i)
        connect(m, link.o, wiring.flipped(self.o))
        port = link.port
        m.d.comb += [
            link.idle.eq(self.idle),
            self.divisor.eq(link.divisor),
            self.writes.eq(port.ready & port.write),
            self.address.eq(port.addr),
            self.data.eq(port.w_data),
        ]
        m.d.sync += [
            port.ready.eq(port.valid & ~port.ready),
            port.r_valid.eq(port.ready & ~port.write),
            port.r_data.eq(port.addr),
        ]
        return m


class Toggle:
    """A signal that is 1 in every other cycle."""

    samples: tuple[()] = ()
    done = True

    def __init__(self, signal: Signal) -> None:
        self.signal = signal
        self.value = 0

    def set(self, ctx: Any) -> None:
        self.value ^= 1
        ctx.set(self.signal, self.value)

    def see(self, cycle: int) -> None:
        """Watch nothing."""


class Outcome:
    """What a link did with a stream: replies, writes, the divisor of every cycle."""

    def __init__(
        self,
        requests: Sequence[Request | bytes],
        *,
        break_at: int | None = None,
        extra: int = 400,
    ) -> None:
        block = Memory()
        bench = Bench(block)
        data = b"".join(r if isinstance(r, bytes) else r.encode() for r in requests)
        bytes_ = [
            {"data": byte, "broken": int(number == break_at)} for number, byte in enumerate(data)
        ]
        self.taken = bench.drive(block.i, bytes_).cycles
        sent = bench.monitor(block.o)
        bench.add(Toggle(block.idle))
        seen = bench.probe(
            writes=block.writes, address=block.address, data=block.data, divisor=block.divisor,
            asks=block.link.port.valid, answers=block.link.port.r_valid,
        )  # fmt: skip
        bench.run(extra=extra)
        self.replies = list(Replies().feed(bytes(sent.payloads)))
        self.sent_cycles = sent.cycles
        self.writes = [
            (address, word)
            for write, address, word in zip(
                seen["writes"], seen["address"], seen["data"], strict=True
            )
            if write
        ]
        self.write_cycles = [cycle for cycle, write in enumerate(seen["writes"]) if write]
        self.divisor = seen["divisor"]
        self.asks, self.answers = ones(seen["asks"]), ones(seen["answers"])


def sync(sequence: int) -> Request:
    return Request(sequence=sequence, command=Command.SYNC)


def write(sequence: int, *data: int, address: int = 0x70000010) -> Request:
    return Request(sequence=sequence, command=Command.WRITE, address=address, data=data)


def read(sequence: int, words: int, address: int = 0x80000020) -> Request:
    return Request(sequence=sequence, command=Command.READ, address=address, words=words)


def reply(sequence: int, status: Status = OK, *data: int) -> Reply:
    return Reply(sequence=sequence, status=status, data=data)


PAUSE = b"\x7e" * 400  # as long as a request and its answer take


@pytest.fixture(autouse=True, params=[0, 1])
def registers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it holds for both forms, to the cycle."""
    monkeypatch.setattr(Memory, "registers", request.param)


def test_words_are_written_and_read() -> None:
    outcome = Outcome([sync(254), PAUSE, write(255, 5, 6), PAUSE, read(0, 3)], extra=700)
    assert outcome.writes == [(0x70000010, 5), (0x70000011, 6)]
    words = (0x80000020, 0x80000021, 0x80000022)
    assert outcome.replies == [reply(254), reply(255), reply(0, OK, *words)]


@pytest.mark.parametrize("words", [1, 10, 60])
def test_a_word_takes_seven_cycles_to_write(words: int) -> None:
    outcome = Outcome([sync(0), PAUSE, write(1, *range(words))], extra=3000)
    first = outcome.write_cycles[0]
    assert outcome.write_cycles == [first + 7 * number for number in range(words)]
    assert first == outcome.taken[-1] + 8 * (6 + 4 * words + 4) + 24


def test_a_word_takes_three_cycles_to_read_while_four_bytes_leave() -> None:
    outcome = Outcome([sync(0), PAUSE, read(1, 3, address=0x80000000)], extra=700)
    assert len(outcome.answers) == 3
    asked = [cycle for answer in outcome.answers for cycle in (answer - 2, answer - 1)]
    assert outcome.asks == asked
    # A byte is offered every 9 cycles, where it leaves at once.
    gaps = [after - before for before, after in pairwise(outcome.answers)]
    assert gaps == [3 + 9 * 4, 3 + 9 * 4]


def test_a_request_is_executed_once_and_answered_again() -> None:
    again = [sync(0), PAUSE, write(1, 7), PAUSE, write(1, 7), PAUSE, read(2, 1), PAUSE, read(2, 1)]
    outcome = Outcome(again, extra=700)
    assert outcome.writes == [(0x70000010, 7)]
    answer = reply(2, OK, 0x80000020)
    assert outcome.replies == [reply(0), reply(1), reply(1), answer, answer]


def test_requests_out_of_order_are_refused() -> None:
    outcome = Outcome([sync(0), PAUSE, write(2, 7), PAUSE, read(255, 1), PAUSE, write(1, 8)])
    assert outcome.writes == [(0x70000010, 8)]
    assert outcome.replies == [reply(0), reply(2, SEQUENCE), reply(255, SEQUENCE), reply(1)]


@pytest.mark.parametrize("sequence", [0, 1, 255])
def test_nothing_is_executed_before_a_session_begins(sequence: int) -> None:
    outcome = Outcome([write(sequence, 7), PAUSE, read(sequence, 1)])
    assert outcome.writes == []
    assert outcome.replies == [reply(sequence, SEQUENCE)] * 2


CHECKED = b"\x7e" * 120  # as long as it takes to look at the CRC of a READ


def test_a_request_that_is_complete_before_the_answer_is_dropped() -> None:
    requests = [sync(0), PAUSE, read(1, 20), CHECKED, write(2, 7), PAUSE * 3, write(2, 8)]
    outcome = Outcome(requests, extra=700)
    assert outcome.writes == [(0x70000010, 8)]
    assert [answer.sequence for answer in outcome.replies] == [0, 1, 2]


@pytest.mark.parametrize("pause", [0, *range(68, 76)])
def test_a_request_whose_crc_was_not_looked_at_gives_way_to_the_next(pause: int) -> None:
    requests = [sync(0), PAUSE, read(1, 1), b"\x7e" * pause, write(1, 8)]
    outcome = Outcome(requests, extra=700)
    first = outcome.replies[1]
    if first.data:  # it was looked at in time: the next one then has a number that was used
        assert pause > 8 * 10 - len(write(1, 8).encode())
        assert (outcome.replies, outcome.writes) == ([reply(0), reply(1, OK, 0x80000020)], [])
    else:
        assert (outcome.replies, outcome.writes) == ([reply(0), reply(1)], [(0x70000010, 8)])


def test_a_frame_with_a_wrong_crc_is_dropped_and_a_short_one_right_behind_it_is_not() -> None:
    wrong = bytearray(write(1, *range(1, 50)).encode())
    wrong[20] ^= 1
    outcome = Outcome([sync(0), PAUSE, bytes(wrong), write(1, 8)])
    assert outcome.writes == [(0x70000010, 8)]
    assert outcome.replies == [reply(0), reply(1)]


def test_an_address_counts_up_in_its_low_byte() -> None:
    outcome = Outcome([sync(0), PAUSE, write(1, 5, 6, address=0x123456FF)])
    assert outcome.writes == [(0x123456FF, 5), (0x12345600, 6)]


def test_bits_of_an_address_that_the_core_does_not_have_are_all_set_if_one_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Memory, "address_bits", 14)
    requests: list[Request | bytes] = [sync(0), PAUSE]
    for number, address in enumerate((0x70003FFF, 0x70004000, 0x78000001, 0xFC000000 >> 1), 1):
        requests += [write(number, number, address=address), PAUSE]
    outcome = Outcome(requests)
    assert outcome.writes == [(0x70003FFF, 1), (0x7FFFC000, 2), (0x7FFFC001, 3), (0x7FFFC000, 4)]


@pytest.mark.parametrize(
    ("region", "tag"),
    [(Region.REGISTERS, 0xABCD1234), (Region.PLANES, 0xABCD1234), (Region.LAYERS, 0),
     (Region.WEIGHTS, 0), (Region.PARAMS, 0)],
)  # fmt: skip
def test_what_was_baked_in_is_told_until_it_is_overwritten(region: Region, tag: int) -> None:
    address = region << regions.SHIFT
    requests = [sync(0), PAUSE, read(1, 2, BAKED), PAUSE]
    requests += [write(2, 0, address=address), PAUSE, read(3, 1, BAKED), PAUSE, read(4, 1)]
    outcome = Outcome(requests, extra=700)
    answers = [reply(0), reply(1, OK, 0xABCD1234, 0xABCD1234), reply(2), reply(3, OK, tag)]
    assert outcome.replies == [*answers, reply(4, OK, 0x80000020)]


def test_a_divisor_holds_once_its_answer_has_left_and_a_break_brings_the_first_one_back() -> None:
    change = Request(sequence=1, command=Command.DIVISOR, address=100)
    requests = [sync(0), PAUSE, change, PAUSE, b"\0", PAUSE]
    at = sum(len(r if isinstance(r, bytes) else r.encode()) for r in requests[:4])
    outcome = Outcome(requests, break_at=at)
    assert outcome.replies == [reply(0), reply(1)]
    changed = outcome.divisor.index(100)
    assert set(outcome.divisor[:changed]) == {12}
    assert changed > outcome.sent_cycles[-1]
    back = outcome.divisor.index(12, changed)
    assert set(outcome.divisor[changed:back]) == {100}
    assert set(outcome.divisor[back:]) == {12}
    assert back >= outcome.taken[at]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (3, ValueError, "divisor must be 4..4095, not 3"),
        (4096, ValueError, "divisor must be 4..4095, not 4096"),
        (12.0, TypeError, "divisor must be an integer, not 12.0"),
    ],
)
def test_a_divisor_that_makes_no_sense_is_refused(
    value: int, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        Link(divisor=value)
