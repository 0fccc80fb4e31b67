# amaranth: UnusedElaboratable=no
"""TapeReader alone: what opens its gate and when, what it refuses, and that it stops."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, repeat

import pytest
from core.external.tape_bench import CORE, words_of, write
from core.harness import Bench, Driver, ones

from lbq_hw.core.external.tape_reader import TapeReader
from lbq_hw.isa import Error, regions, tape
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import TapeError, TapeItem

PASS, END = TapeItem(address=tape.PASS), TapeItem(address=tape.END)


class Words(Driver):
    """Offers words, and is done even if some are left."""

    done = True


START = 2  # cycle of the start; words come from the cycle after on


def read(
    data: bytes, *, script: list[dict] | None = None, bits: int = 16
) -> tuple[list[int], dict[str, list[int]]]:
    """Cycles in which words were read, and what was seen."""
    reader = TapeReader(CORE.with_(external=bits))
    bench = Bench(reader)
    waits = chain(repeat(True, START + 1), repeat(False)).__next__
    words = bench.add(Words(reader.i, words_of(data, bits), waits))
    given = {name: getattr(reader, name) for name in ("start", "stop", "begun", "resting")}
    started = [{"resting": 1}] * START + [{"resting": 1, "start": 1}]
    bench.script(given, started + (script or [{"resting": 1}] * 400))
    names = ("busy", "waiting", "allow", "ended", "error", "written", "addr", "data")
    seen = bench.probe(**{name: getattr(reader, name) for name in names})
    bench.run()
    return [cycle for cycle in words.cycles if seen["busy"][cycle]], seen


def encoded(*items: TapeItem, bits: int = 16) -> bytes:
    return tape.encode(CORE.with_(external=bits), items)


@pytest.mark.parametrize(("bits", "each"), [(16, 2), (32, 1)])
def test_words_are_taken_with_the_gaps_of_the_contract(bits: int, each: int) -> None:
    taken, seen = read(encoded(write(Region.RUNS, 3, 0, 2), PASS, bits=bits), bits=bits)
    cycle, expected, ends = START, [], []
    for payload in (3, 2, 0, 0):
        for slices in (2, payload + 1):
            expected += range(cycle + 1, cycle + 1 + slices * each)
            cycle = expected[-1] + 1
        ends.append(expected[-1])
    assert taken == expected
    assert ones(seen["allow"]) == [ends[2] + 1]
    assert ones(seen["ended"])[0] == ends[3] + 2
    assert ones(seen["busy"]) == list(range(START + 1, ends[3] + 2))
    first = (6 + 2 + 1) * each - 1  # word that completes the first slice of payload
    written = ones(seen["written"])
    assert written == [taken[first] + 1, taken[first + each] + 1]
    assert [seen["written"][cycle] for cycle in written] == [1 << Region.RUNS] * 2
    assert [seen["data"][cycle] for cycle in written] == [0, 1]
    address = regions.address(CORE, Region.RUNS, 3)
    assert [seen["addr"][cycle] for cycle in written] == [address, address + 1]
    assert not any(seen["error"])


def test_an_item_is_taken_from_the_cycle_after_its_pass_is_done() -> None:
    data = encoded(write(Region.RUNS, 3, 0, 2, after=2), PASS)
    rests = {60: (1, 1), 70: (2, 0), 90: (2, 1)}  # passes begun, and whether all of them are done
    script, now = [], (0, 1)
    for cycle in range(START + 1, 200):
        now = rests.get(cycle, now)
        script.append({"begun": now[0], "resting": now[1]})
    taken, seen = read(data, script=script)
    assert taken[12 + 4] == 90 + 1
    assert ones(seen["waiting"]) == list(range(taken[12 + 3] + 1, 90))
    # More passes than it waits for are as good.
    script = [{"begun": 3 * (cycle > 77), "resting": cycle < 78} for cycle in range(START + 1, 200)]
    assert read(data, script=script)[0][12 + 4] == 78 + 1


def test_words_after_a_stop_are_forgotten_and_a_start_begins_anew() -> None:
    data = encoded(write(Region.RUNS, 3, 0, 2), PASS)
    idle = {"resting": 1}
    script = [idle] * 20 + [idle | {"stop": 1}] + [idle] * 10
    taken, seen = read(data, script=script)
    assert max(taken) == START + 1 + 20
    assert ones(seen["busy"])[-1] == START + 1 + 20
    before = (data * 2)[: 2 * (len(taken) + 10 + 1)]  # one a cycle, that of the start too
    taken, seen = read(before + data, script=[*script, idle | {"start": 1}, *[idle] * 100])
    assert any(seen["ended"])
    assert not any(seen["error"])


def raw(*items: TapeItem) -> bytes:
    data = tape.joined(CORE, items)
    return data + bytes(-len(data) % 1024)


PARTS = regions.slices(CORE)
HEAD = tape.head(CORE, 6 + 3 + 3)  # of a tape with PASS and END
ROW = PARTS[Region.WEIGHTS]
ILLEGAL = {
    "zeros": bytes(1024),
    "ones": b"\xff" * 1024,
    "no HEAD": raw(PASS, END),
    "END instead of HEAD": raw(END),
    "another magic": raw(replace(HEAD, payload=(5, *HEAD.payload[1:])), PASS, END),
    "another core": raw(tape.head(CORE.with_(runs=13), 12), PASS, END),
    "a HEAD that waits": raw(replace(HEAD, after=1), PASS, END),
    "a long HEAD": raw(replace(HEAD, payload=(*HEAD.payload, 0)), PASS, END),
    "a second HEAD": tape.encode(CORE, [HEAD, PASS]),
    "PASS with a pass to wait for": tape.encode(CORE, [replace(PASS, after=1)]),
    "PASS with payload": tape.encode(CORE, [replace(PASS, payload=(0,))]),
    "almost PASS": tape.encode(CORE, [TapeItem(address=tape.PASS + 1)]),
    "END with payload": raw(tape.head(CORE, 13), PASS, replace(END, payload=(0,))),
    "END too soon": raw(tape.head(CORE, 13), PASS, END, END),
    "END too late": raw(tape.head(CORE, 11), PASS, END),
    "fewer slices than HEAD has": raw(tape.head(CORE, 5), PASS, END),
    "registers": tape.encode(CORE, [write(Region.REGISTERS, 0, 0, 1)]),
    "planes": tape.encode(CORE, [write(Region.PLANES, 0, 0, 1)]),
    "logits": tape.encode(CORE, [write(Region.LOGITS, 0, 0, 1)]),
    "region 12": tape.encode(CORE, [TapeItem(address=12 << regions.SHIFT)]),
    "a row that does not exist": tape.encode(CORE, [write(Region.WEIGHTS, 24, 0, ROW)]),
    "far beyond the rows": tape.encode(CORE, [write(Region.WEIGHTS, 1 << 20, 0, ROW)]),
    "rows beyond the last": tape.encode(CORE, [write(Region.WEIGHTS, 23, 0, 2 * ROW)]),
    "layers beyond the last": tape.encode(CORE, [write(Region.LAYERS, 3, 0, 40)]),
    "a slice that does not exist": tape.encode(
        CORE, [write(Region.LAYERS, 1, PARTS[Region.LAYERS], 1)]
    ),
    "a row from its middle": tape.encode(CORE, [write(Region.WEIGHTS, 1, 1, ROW)]),
    "a part of a row": tape.encode(CORE, [write(Region.WEIGHTS, 1, 0, ROW + 1)]),
    "a part of a parameter": tape.encode(CORE, [write(Region.PARAMS, 1, 0, 1)]),
}  # fmt: skip


def exchanged(data: bytes, one: int, other: int, size: int) -> bytes:
    wrong = bytearray(data)
    wrong[one : one + size], wrong[other : other + size] = (
        data[other : other + size],
        data[one : one + size],
    )
    return bytes(wrong)


@pytest.mark.parametrize("bits", [16, 32])
def test_a_whole_item_is_right_in_its_place_alone(bits: int) -> None:
    """Two items of one size change places, or one is that of another tape."""
    first, second, third = (write(Region.RUNS, entry, 0, 2) for entry in (3, 4, 5))
    data, size = encoded(first, second, PASS, bits=bits), len(first.encode())
    begin = len(HEAD.encode())
    other = encoded(third, second, PASS, bits=bits)
    place = begin + size
    for wrong in (
        exchanged(data, begin, place, size),
        data[:place] + other[place : place + size] + data[place + size :],
    ):
        _, seen = read(wrong, bits=bits)
        assert seen["error"][-1] == Error.CRC
        assert not any(seen["ended"])
        with pytest.raises(TapeError, match="has a wrong CRC"):
            list(tape.decode(CORE.with_(external=bits), wrong))


@pytest.mark.parametrize("name", ILLEGAL)
def test_an_illegal_item_ends_in_tape(name: str) -> None:
    data = ILLEGAL[name]
    _, seen = read(data)
    assert seen["error"][-1] == Error.TAPE
    assert not seen["busy"][-1]
    assert not any(seen["ended"])
    with pytest.raises(TapeError):
        list(tape.decode(CORE, data))
