"""Facts to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lbq_hw.report import Facts, ReportError, store
from lbq_hw.report.facts import Fit, LayerCycles
from lbq_hw.report.summary import summary
from lbq_hw.tools.placed import Resource


def test_facts_survive_the_round_trip(facts: Facts, tmp_path: Path) -> None:
    store.write(tmp_path, facts)
    assert store.read(tmp_path) == facts


def test_every_part_has_a_file_of_its_name_and_only_it(facts: Facts, tmp_path: Path) -> None:
    store.write(tmp_path, facts)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"{part}.json" for part in (*store.PARTS, "summary")}


@pytest.mark.parametrize("part", store.PARTS)
def test_any_part_may_be_missing(facts: Facts, tmp_path: Path, part: str) -> None:
    store.write(tmp_path, facts)
    fewer = replace(facts, **{part: None})
    store.write(tmp_path, fewer)
    assert not (tmp_path / f"{part}.json").exists()
    assert store.read(tmp_path) == fewer


def test_the_summary_has_the_numbers_that_come_first(facts: Facts) -> None:
    found = summary(facts)
    assert facts.cycles is not None
    assert found["fits"] is True
    assert found["timing_met"] is True
    assert found["bit_exact"] is True
    assert found["seconds_per_image"] == facts.cycles.cycles / 12e6
    assert found["images_per_second_core"] == 1 / found["seconds_per_image"]
    assert found["link_seconds_per_image"] == 0.009
    assert found["images_per_second"] == 1 / (found["seconds_per_image"] + 0.009)
    assert found["resources"]["LC"] == 71
    assert json.loads(json.dumps(found)) == found


def test_a_design_larger_than_the_board_does_not_fit(facts: Facts) -> None:
    large = (Resource(kind="LC", used=5281, available=5280),)
    assert summary(replace(facts, resources=large))["fits"] is False
    refused = Fit(fits=False, resources={"LC": 9000}, reasons=("too large",))
    assert summary(replace(facts, resources=None, fit=refused))["fits"] is False


def test_nothing_is_claimed_of_what_was_not_done() -> None:
    assert set(summary(Facts()).values()) == {None}


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("timing", {"colour": 1}, "timing has the unknown key 'colour'"),
        ("board", {"clock_hz": "12"}, "board.clock_hz must be an integer, not '12'"),
        ("board", {"available": {"LUTS": 1}}, "board: a resource kind must be one of LC, LUT, FF, "
                                              "LUTRAM, EBR, SPRAM, DSP, PLL, IO, not 'LUTS'"),
        ("cycles", {"source": "guess"}, "cycles.source must be one of 'rtl', 'model', not 'guess'"),
        ("neurons", {"layers": 3}, "neurons.layers must be a list, not 3"),
    ],
)  # fmt: skip
def test_a_damaged_part_is_refused_with_its_place(
    facts: Facts, tmp_path: Path, part: str, change: dict[str, Any], message: str
) -> None:
    store.write(tmp_path, facts)
    path = tmp_path / f"{part}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ReportError) as caught:
        store.read(tmp_path)
    assert str(caught.value) == f"{path} cannot be used: {message}"


def test_a_part_that_lacks_a_key_is_refused(facts: Facts, tmp_path: Path) -> None:
    store.write(tmp_path, facts)
    path = tmp_path / "core.json"
    path.write_text('{"digest": "00"}')
    with pytest.raises(ReportError) as caught:
        store.read(tmp_path)
    assert str(caught.value) == f"{path} cannot be used: core lacks the key 'config'"


def test_a_folder_without_a_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError) as caught:
        store.read(tmp_path)
    assert str(caught.value) == f"{tmp_path} must be a folder with a report's JSON files"


def test_an_unknown_limit_is_refused() -> None:
    counted = dict.fromkeys(
        ("cycles", "events", "null_events", "acs_bit_sparse", "utilisation"), 1.0
    )
    with pytest.raises(ValueError, match="a limit must be") as caught:
        LayerCycles(name="x", **counted, limit="magic")
    assert str(caught.value) == (
        "a limit must be one of events, scanner, walker, neurons, overhead, memory, not 'magic'"
    )
