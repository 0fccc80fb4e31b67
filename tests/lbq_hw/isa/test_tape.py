"""The bytes of a tape: a round trip, and everything that is refused."""

from __future__ import annotations

import random

import pytest

from lbq_hw.config import CoreConfig, narrow_mask
from lbq_hw.isa import regions, tape
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import TapeError, TapeItem

CORE = CoreConfig().with_external()
WEIGHTS = regions.address(CORE, Region.WEIGHTS, 3)
ITEMS = [
    TapeItem(address=WEIGHTS, payload=(1, 2, 0xFFFFFFFF, 3)),
    TapeItem(address=tape.PASS),
    TapeItem(address=WEIGHTS, payload=(4, 5, 6, 7), after=1),
    TapeItem(address=tape.PASS),
]


def test_a_tape_comes_back_as_it_was() -> None:
    data = tape.encode(CORE, ITEMS)
    assert len(data) == 1024
    assert list(tape.decode(CORE, data)) == ITEMS


def test_entries_that_are_too_many_for_an_item_take_several() -> None:
    core = CoreConfig(lanes=64, word=64, weight_rows=1 << 13)
    size = regions.slices(core)[Region.WEIGHTS]
    assert size == 16
    rows = tape.MOST_SLICES // size
    payload = list(range(8000 * size))
    items = list(tape.writes(core, Region.WEIGHTS, 100, payload, after=7))
    assert [len(item.payload) for item in items] == [rows * size, (8000 - rows) * size]
    assert [slice_ for item in items for slice_ in item.payload] == payload
    places = [tape.entry(core, item) for item in items]
    assert places == [(Region.WEIGHTS, 100, 0), (Region.WEIGHTS, 100 + rows, 0)]
    assert {item.after for item in items} == {7}


def test_an_item_has_its_bytes_lowest_first() -> None:
    made = TapeItem(address=0x50000018, payload=(0x11223344,), after=2).encode()
    assert made[:12].hex() == "18000050" + "01000200" + "44332211"
    assert made[12:].hex() == "ff4fa87d"


@pytest.mark.parametrize("seed", range(200))
def test_a_tape_with_wrong_bits_is_refused(seed: int) -> None:
    draw, data = random.Random(seed), bytearray(tape.encode(CORE, ITEMS))
    used = len(data.rstrip(b"\0"))
    for _ in range(draw.randint(1, 3)):
        data[draw.randrange(used)] ^= 1 << draw.randrange(8)
    if bytes(data) != tape.encode(CORE, ITEMS):
        with pytest.raises(TapeError):
            list(tape.decode(CORE, bytes(data)))


def test_a_memory_of_zeros_or_ones_is_no_tape() -> None:
    for data in (bytes(1024), b"\xff" * 1024):
        with pytest.raises(TapeError, match=r"^the item at byte 0 has a wrong CRC$|ends within"):
            list(tape.decode(CORE, data))


def test_a_short_tape_is_refused() -> None:
    data = tape.encode(CORE, ITEMS)
    with pytest.raises(TapeError, match=r"^the tape ends within the item at byte 24$"):
        list(tape.decode(CORE, data[:40]))


def test_a_tape_for_another_core_is_refused() -> None:
    with pytest.raises(TapeError, match=r"^the tape is for another core$"):
        list(tape.decode(CORE.with_(runs=2 * CORE.runs), tape.encode(CORE, ITEMS)))


def test_a_tape_without_head_is_refused() -> None:
    with pytest.raises(TapeError, match=r"^HEAD must be the first item, and no other$"):
        list(tape.decode(CORE, ITEMS[0].encode()))


@pytest.mark.parametrize("region", [Region.REGISTERS, Region.PLANES, Region.LOGITS])
def test_an_item_that_writes_elsewhere_is_refused(region: Region) -> None:
    address = region << regions.SHIFT
    with pytest.raises(TapeError, match=rf"^an item must not have address {address:#010x}$"):
        list(tape.decode(CORE, tape.encode(CORE, [TapeItem(address=address, payload=(1,))])))


def test_an_item_that_waits_for_what_comes_after_it_is_refused() -> None:
    late = TapeItem(address=WEIGHTS, payload=(4, 5, 6, 7), after=1)
    with pytest.raises(TapeError, match=r"^an item waits for pass 0, which comes after it$"):
        list(tape.decode(CORE, tape.encode(CORE, [late])))


def test_passes_and_the_end_bring_nothing() -> None:
    for bad in (TapeItem(address=tape.PASS, payload=(1,)), TapeItem(address=tape.END, after=1)):
        with pytest.raises(
            TapeError, match=r"^PASS and END must have neither payload nor pass to wait for$"
        ):
            list(tape.decode(CORE, tape.encode(CORE, [bad])))


def test_an_end_that_is_not_where_the_head_says_is_refused() -> None:
    early = [*ITEMS, TapeItem(address=tape.END)]
    with pytest.raises(TapeError, match=r"^END must end at slice 32, not 29$"):
        list(tape.decode(CORE, tape.encode(CORE, early)))


def test_an_item_that_waits_for_too_many_passes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^a tape must have at most 65535 passes, not 65536$"):
        TapeItem(address=WEIGHTS, payload=(0,), after=65536).encode()


def test_an_item_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^an item must have at most 65535 slices, not 65536$"):
        TapeItem(address=WEIGHTS, payload=(0,) * 65536).encode()


@pytest.mark.parametrize(
    ("region", "entry", "slices"),
    [(Region.WEIGHTS, 4094, 12), (Region.RUNS, 255, 3), (Region.PARAMS, 511, 6)],
)
def test_an_item_that_leaves_its_region_is_refused(region: Region, entry: int, slices: int) -> None:
    address = regions.address(CORE, region, entry)
    bad = TapeItem(address=address, payload=(0,) * slices)
    text = f"an item of {slices} slices at {address:#010x} leaves its region"
    with pytest.raises(TapeError, match=f"^{text}$"):
        list(tape.decode(CORE, tape.encode(CORE, [bad])))


def test_a_slice_that_no_entry_has_is_refused() -> None:
    address = regions.address(CORE, Region.PARAMS, 0) + 3
    bad = TapeItem(address=address, payload=(0,))
    text = f"an item of 1 slices at {address:#010x} leaves its region"
    with pytest.raises(TapeError, match=f"^{text}$"):
        list(tape.decode(CORE, tape.encode(CORE, [bad])))


@pytest.mark.parametrize("region", [Region.WEIGHTS, Region.PARAMS])
@pytest.mark.parametrize(("part", "slices"), [(0, 2), (1, 3)])
def test_a_part_of_a_row_or_parameter_is_refused(region: Region, part: int, slices: int) -> None:
    address = regions.address(CORE, region, 2, part)
    bad = TapeItem(address=address, payload=(0,) * slices)
    text = f"an item of {slices} slices at {address:#010x} has a part of an entry"
    with pytest.raises(TapeError, match=f"^{text}$"):
        list(tape.decode(CORE, tape.encode(CORE, [bad])))


NARROW = CoreConfig(weight_bits=8, lanes=32).with_external(narrow=narrow_mask((6, 4)))
"""Rows of 8, 6 and 4 slices."""


@pytest.mark.parametrize(
    ("number", "entry", "part", "slices", "problem"),
    [
        (10, 4094, 0, 18, "leaves its region"),
        (11, 4095, 0, 8, "leaves its region"),
        (10, 0, 6, 6, "leaves its region"),
        (10, 0, 0, 8, "has a part of an entry"),
        (11, 0, 1, 3, "has a part of an entry"),
        (5, 0, 0, 6, "has a part of an entry"),
    ],
)
def test_rows_of_fewer_bits_come_whole_and_within_their_memory(
    number: int, entry: int, part: int, slices: int, problem: str
) -> None:
    address = number << regions.SHIFT | entry << 3 | part
    bad = TapeItem(address=address, payload=(0,) * slices)
    text = f"an item of {slices} slices at {address:#010x} {problem}"
    with pytest.raises(TapeError, match=f"^{text}$"):
        list(tape.decode(NARROW, tape.encode(NARROW, [bad])))


def test_rows_of_a_width_that_the_core_does_not_have_are_refused() -> None:
    bad = TapeItem(address=12 << regions.SHIFT, payload=(0,) * 4)
    with pytest.raises(TapeError, match=r"^an item must not have address 0xc0000000$"):
        list(tape.decode(NARROW, tape.encode(NARROW, [bad])))


def test_a_head_without_payload_is_refused() -> None:
    with pytest.raises(TapeError, match=r"^the tape is for another core$"):
        list(tape.decode(CORE, TapeItem(address=tape.HEAD).encode()))


def test_a_tape_of_too_many_passes_is_refused() -> None:
    data = tape.encode(CORE, [TapeItem(address=tape.PASS)] * 65536)
    with pytest.raises(TapeError, match=r"^a tape must have at most 65535 passes$"):
        list(tape.decode(CORE, data))
