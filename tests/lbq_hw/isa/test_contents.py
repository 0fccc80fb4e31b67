"""Memories that a tape fills, the records of its passes, and when they are written."""

from __future__ import annotations

import numpy as np
import pytest
from tapes import compiled, drawn

from lbq_hw import isa
from lbq_hw.compiler import weights
from lbq_hw.config import CoreConfig, Profile, narrow_mask
from lbq_hw.isa import regions, tape
from lbq_hw.isa.contents import Contents, replay
from lbq_hw.isa.record import Record
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import TapeError, TapeItem

CORE = CoreConfig(
    lanes=8, word=8, summary=4, units=2, external=16, layers=2, layer_paths=2,
    profile=Profile.SPREAD, partial_words=16, partial_bits=12,
)  # fmt: skip


def written(region: Region, entry: int, words: list[int], *, after: int = 0) -> TapeItem:
    """An item that writes whole entries."""
    size = regions.slices(CORE)[region]
    payload = [word >> 32 * part & 0xFFFFFFFF for word in words for part in range(size)]
    address = regions.address(CORE, region, entry)
    return TapeItem(address=address, payload=tuple(payload), after=after)


def record(kind: Record, **values: int) -> int:
    return kind.encode(CORE, dict.fromkeys(kind.slots(CORE), 0) | values)


def records(**layer: int) -> list[TapeItem]:
    """Zeros in the first entry of every table, but for some fields of LAYER."""
    return [
        written(Region.LAYERS, 0, [record(isa.LAYER, **layer)]),
        written(Region.PATHS, 0, [record(isa.PATH)]),
        written(Region.SEGMENTS, 0, [record(isa.SEGMENT)]),
        written(Region.RUNS, 0, [record(isa.RUN)]),
    ]


def contents(*items: TapeItem) -> Contents:
    made = Contents(CORE, np.random.default_rng(1))
    for item in items:
        made.write(item)
    return made


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_weight_rows_come_back_as_they_were(bits: int) -> None:
    config = CORE.with_(weight_bits=bits)
    half = 1 << (bits - 1)
    rows = np.random.default_rng(bits).integers(-half, half, (5, 8))
    payload = tuple(weights.slices(rows, config, bits).ravel().tolist())
    made = Contents(config, np.random.default_rng(0))
    before = made.weights()
    made.write(TapeItem(address=regions.address(config, Region.WEIGHTS, 7), payload=payload))
    assert np.array_equal(made.weights()[7:12], rows)
    assert np.array_equal(made.weights()[:7], before[:7])
    assert np.array_equal(made.weights()[12:], before[12:])


@pytest.mark.parametrize(("weight_bits", "widths"), [(4, (3, 2)), (8, (6, 5, 2)), (6, (4,))])
def test_rows_of_fewer_bits_come_back_as_they_were(
    weight_bits: int, widths: tuple[int, ...]
) -> None:
    config = CORE.with_(weight_bits=weight_bits, narrow=narrow_mask(widths))
    made = Contents(config, np.random.default_rng(0))
    for bits in widths:
        half, before = 1 << (bits - 1), made.weights()
        rows = np.random.default_rng(bits).integers(-half, half, (5, 8))
        payload = weights.slices(rows, config, bits).ravel().tolist()
        [item] = tape.writes(config, Region.WEIGHTS, 7, payload, bits=bits)
        assert [*tape.decode(config, tape.encode(config, [item]))] == [item]
        made.write(item)
        assert np.array_equal(made.weights()[7:12], rows)
        assert np.array_equal(made.weights()[:7], before[:7])
        assert np.array_equal(made.weights()[12:], before[12:])


def test_parameters_and_records_come_back_as_they_were() -> None:
    params = [record(isa.PARAM, bias=-3, theta=7, reset=channel) for channel in range(8)]
    made = contents(written(Region.PARAMS, 8, params), *records(readout=1))
    assert made.params()[8:16] == [
        {"bias": -3, "theta": 7, "reset": channel, "floor": 0} for channel in range(8)
    ]
    found = made.records(0)
    assert found.layer["readout"] == 1
    assert (len(found.paths), len(found.segments), len(found.runs[0])) == (1, 1, 1)
    assert made.records(2) == found  # entries are counted modulo the layers


def test_an_illegal_record_is_refused() -> None:
    word = record(isa.LAYER) | 1 << isa.LAYER.slots(CORE)["reserved"].offset
    made = contents(*records(), written(Region.LAYERS, 0, [word]))
    with pytest.raises(TapeError, match=r"^layer\.reserved must be at most 0, not 1$"):
        made.records(0)


def test_a_pass_with_too_many_paths_is_refused() -> None:
    paths = written(Region.PATHS, 0, [record(isa.PATH)] * 3)
    made = contents(*records(path_last=2), paths)
    with pytest.raises(TapeError, match=r"^a pass must have at most 2 paths, not 3$"):
        made.records(0)


def test_a_segment_of_a_path_that_a_pass_does_not_have_is_refused() -> None:
    made = contents(*records(), written(Region.SEGMENTS, 0, [record(isa.SEGMENT, path=1)]))
    with pytest.raises(TapeError, match=r"^segment\.path must be below 1, not 1$"):
        made.records(0)


def test_items_are_written_as_early_as_they_may() -> None:
    """What waits for a pass is written when it is done, and holds up what comes behind it."""
    go = TapeItem(address=tape.PASS)

    def param(value: int, after: int) -> TapeItem:
        return written(Region.PARAMS, value, [record(isa.PARAM, bias=value)], after=after)

    last = written(Region.LAYERS, 1, [record(isa.LAYER, last=1)])
    items = [*records(), last, go, param(1, 0), param(2, 1), param(3, 0), go]
    made = contents()
    seen = []
    for _ in replay(tape.encode(CORE, items), made):
        seen.append([made.params()[value]["bias"] == value for value in (1, 2, 3)])
    assert seen == [[True, False, False], [True, True, True]]


def test_every_pass_of_a_compiled_tape_has_legal_records() -> None:
    network, config = drawn(11)
    program = compiled(network, config)
    made = Contents(config, np.random.default_rng(0))
    found = list(replay(program.tape, made))
    assert len(found) == len(program.passes)
    for one, cut in zip(found, program.passes, strict=True):
        assert one.layer["rows_last"] == cut.end - cut.first - 1
        assert one.layer["tiles_last"] == 0
    assert [one.layer["last"] for one in found] == [0] * (len(found) - 1) + [1]
