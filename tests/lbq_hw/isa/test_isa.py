from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.isa import link, regions
from lbq_hw.isa.__main__ import main
from lbq_hw.isa.record import Record
from lbq_hw.isa.regions import Region

CONFIGS = (
    CoreConfig(),
    CoreConfig(
        lanes=4, word=8, summary=1, units=1, planes=1, timesteps=1, side=1, row_words=1,
        plane_words=1, weight_rows=1, channels=4, logits=4, layers=1, paths=1, segments=1, runs=1,
        layer_paths=1, decay_bits=0, fraction_bits=0,
    ),
    CoreConfig(lanes=256, word=256, plane_words=36864, weight_rows=270460, channels=5632,
               logits=256, paths=33),
)  # fmt: skip
RECORDS = (*isa.TABLES.values(), isa.PARAM, link.REQUEST, link.REPLY)


@st.composite
def values(draw: st.DrawFn, record: Record, config: CoreConfig) -> dict[str, int]:
    return {
        name: draw(st.integers(slot.field.least(config), slot.field.largest(config)))
        for name, slot in record.slots(config).items()
    }


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_record_survives_encoding(record: Record, config: CoreConfig) -> None:
    @given(values(record, config))
    def check(wanted: dict[str, int]) -> None:
        word = record.encode(config, wanted)
        assert 0 <= word < 1 << record.width(config)
        assert record.decode(config, word) == wanted

    check()


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_fields_lie_side_by_side_from_bit_0(record: Record, config: CoreConfig) -> None:
    offset = 0
    for slot in record.slots(config).values():
        assert slot.offset == offset
        assert (slot.width == 0) <= (slot.field.largest(config) == 0)
        offset += slot.width
    assert offset == record.width(config)
    assert record.slices(config) == -(-offset // 32)


def test_the_first_field_takes_the_lowest_bits() -> None:
    config = CoreConfig()
    record = {"path": 3, "exponent": 2, "base": 1, "weight": 0}
    assert isa.SEGMENT.encode(config, record) == 3 | 2 << 4 | 1 << 9


def test_a_core_without_an_ability_has_no_bits_for_it() -> None:
    config = CoreConfig(window=1, timesteps=1, layer_paths=1, identities=0)
    absent = {
        record.name: [name for name, slot in record.slots(config).items() if not slot.width]
        for record in isa.TABLES.values()
    }
    assert absent == {
        "layer": [
            "static",
            "time_last",
            "window_rows_last",
            "window_columns_last",
            "window_row_init",
            "window_column_init",
            "window_row_step",
            "window_column_step",
            "conv_rows_last",
            "conv_columns_last",
            "out_frame",
            "partial_in",
            "partial_out",
            "to_zero",
        ],
        "path": [
            "identity",
            "row_window",
            "column_window",
            "frame_words",
            "lanes",
        ],
        "segment": ["path"],
        "run": [],
    }
    with pytest.raises(ValueError, match=r"^path\.row_window must be 0\.\.0, not 1$"):
        isa.PATH.encode(config, dict.fromkeys(isa.PATH.slots(config), 0) | {"row_window": 1})


def test_a_negative_value_is_kept_in_twos_complement() -> None:
    config = CoreConfig()
    record = {"row": -1, "column": 0, "length_last": 0, "weight": 0}
    assert isa.RUN.encode(config, record) == (1 << config.row_offset_bits) - 1


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            {"path": 16, "exponent": 0, "base": 0, "weight": 0},
            "segment.path must be 0..15, not 16",
        ),
        (
            {"path": 0, "exponent": -1, "base": 0, "weight": 0},
            "segment.exponent must be 0..31, not -1",
        ),
        (
            {"path": 0, "exponent": 0, "base": 0, "wait": 0},
            "a segment record must have exactly its fields, not wait, weight",
        ),
    ],
)
def test_what_a_field_cannot_hold_is_refused(record: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        isa.SEGMENT.encode(CoreConfig(), record)


def test_illegal_values_are_all_named() -> None:
    config = CoreConfig(planes=3)
    layer = dict.fromkeys(isa.LAYER.slots(config), 0)
    assert isa.LAYER.violations(config, layer) == []
    layer |= {"planes_last": 3, "reserved": 1, "segment_first": 2, "path_last": 2}
    assert isa.LAYER.violations(config, layer) == [
        "layer.planes_last must be at most 2, not 3",
        "layer.reserved must be at most 0, not 1",
        "layer.segment_first must not be above segment_last, not 2 > 0",
    ]


@pytest.mark.parametrize("config", CONFIGS)
def test_regions_do_not_overlap(config: CoreConfig) -> None:
    spans = []
    for region in regions.reached(config):
        entries, slices = regions.entries(config)[region], regions.slices(config)[region]
        first = regions.address(config, region, 0)
        last = regions.address(config, region, entries - 1, slices - 1)
        assert first == region << regions.SHIFT
        spans.append((first, last))
    assert all(a[1] < b[0] for a, b in pairwise(spans))


def test_an_address_outside_a_region_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^LOGITS has no slice 0 of entry 64$"):
        regions.address(CoreConfig(), Region.LOGITS, 64)


@pytest.mark.parametrize(
    ("bits", "lanes"), [(2, 16), (3, 8), (4, 8), (5, 4), (6, 4), (8, 4), (9, 2), (16, 2)]
)
def test_weights_of_a_slice_fit_it(bits: int, lanes: int) -> None:
    assert regions.weight_slice_lanes(CoreConfig(weight_bits=bits)) == lanes


def test_a_tag_counts_what_is_there() -> None:
    image = {Region.LAYERS: [1, 0, 2], Region.RUNS: [3]}
    same = {Region.RUNS: (3, 0), Region.LAYERS: (1, 0, 2, 0, 0), Region.PATHS: [0]}
    assert regions.tag(image) == regions.tag(same)
    others = ({**image, Region.LAYERS: [1, 2]}, {**image, Region.PATHS: [3]}, {})
    assert len({regions.tag(image), *(regions.tag(other) for other in others)}) == 4
    assert all(0 < regions.tag(other) < 1 << 32 for other in others)


def test_the_documentation_names_every_field_register_and_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    for record in RECORDS:
        for field in record.fields:
            assert f"| `{field.name}` |" in text
        for first, last in record.ordered:
            assert f"`{first}` must not be above `{last}`." in text
    for register in (regions.REGISTERS | regions.MEMORY_REGISTERS).values():
        assert f"| {register.address} | `{register.name}` | {register.access} |" in text
    for kind in (isa.Error, link.Command, link.Status):
        for code in kind:
            assert code.meaning
            assert f"| {code.value} | `{code.name}` | {code.meaning} |" in text


def test_the_page_on_records_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[3] / "docs" / "isa.md"
    assert main([]) == 0
    assert capsys.readouterr().out == page.read_text("utf-8")


def test_a_code_is_found_by_its_number() -> None:
    assert isa.Error(7) is isa.Error.PLANE
    assert isa.Error.PLANE + 1 == 8


def test_the_counters_are_registers_that_lie_side_by_side() -> None:
    names = list(regions.REGISTERS)
    first = names.index("cycles")
    assert names[first:] == ["cycles", "cycles_high", *regions.COUNTERS[1:]]
    assert [regions.REGISTERS[name].access for name in names[first:]] == ["r"] * (
        len(names) - first
    )


def test_each_table_of_a_program_is_a_region() -> None:
    assert regions.TABLES == {
        Region.LAYERS: "layers",
        Region.PATHS: "paths",
        Region.SEGMENTS: "segments",
        Region.RUNS: "runs",
    }
