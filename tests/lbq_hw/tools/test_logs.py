"""Parsers on what the real tools wrote of tests/report/fixtures/tiny.v."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lbq_hw import families
from lbq_hw.tools import logs
from lbq_hw.tools.placed import Clock, Resource

FIXTURES = Path(__file__).parents[2] / "report" / "fixtures"


def parsed(name: str) -> dict[str, Any]:
    return logs.parse((FIXTURES / name).read_text(encoding="utf-8"), name=name)


def text(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("fabric", "expected"),
    [
        (
            "ice40",
            {"LC": (71, 5280), "EBR": (1, 30), "SPRAM": (0, 4), "DSP": (0, 8), "PLL": (0, 1),
             "IO": (6, 39)},
        ),
        (
            "ecp5",
            {"LUT": (33, 24288), "FF": (21, 24288), "LUTRAM": (0, 3036), "EBR": (1, 56),
             "DSP": (0, 28), "PLL": (0, 2), "IO": (6, 197)},
        ),
        (
            "gowin",
            {"LUT": (29, 8640), "FF": (21, 6480), "LUTRAM": (0, 270), "EBR": (1, 26),
             "DSP": (0, 20), "PLL": (0, 2), "IO": (6, 276)},
        ),
    ],
)  # fmt: skip
def test_resources_of_every_fabric_are_found_by_kind(
    fabric: str, expected: dict[str, tuple[int, int]]
) -> None:
    assert logs.resources(parsed(f"{fabric}-report.json"), families.find(fabric).cells) == tuple(
        Resource(kind=kind, used=used, available=available)
        for kind, (used, available) in expected.items()
    )


@pytest.mark.parametrize(
    ("fabric", "clock", "target"),
    [("ice40", "clk", 12e6), ("ecp5", "clk", 50e6), ("gowin", "clk_IBUF_I_O", 27e6)],
)
def test_the_critical_path_takes_as_long_as_fmax_says(
    fabric: str, clock: str, target: float
) -> None:
    timing = logs.timing(parsed(f"{fabric}-report.json"), seed=7)
    assert timing.seed == 7
    (found,) = timing.clocks
    assert (found.name, found.target_hz) == (clock, target)
    assert timing.slowest is found
    assert timing.met
    path = timing.paths[0]
    assert (path.source, path.sink) == (f"posedge {clock}",) * 2
    assert f"{1e3 / path.delay_ns:.2f}" == f"{found.fmax_hz / 1e6:.2f}"
    assert path.segments[0].kind == "clk-to-q"
    assert path.segments[-1].kind == "setup"
    assert all(segment.net for segment in path.segments if segment.kind == "routing")


def test_the_slowest_clock_is_the_one_with_the_least_room() -> None:
    report = {
        "fmax": {
            "fast": {"achieved": 200.0, "constraint": 190.0},
            "slow": {"achieved": 30.0, "constraint": 12.0},
            "missed": {"achieved": 23.5, "constraint": 24.0},
        }
    }
    timing = logs.timing(report)
    assert not timing.met
    assert timing.slowest == Clock(name="missed", fmax_hz=23.5e6, target_hz=24e6)


@pytest.mark.parametrize(
    ("fabric", "some"),
    [
        ("ice40", {"SB_LUT4": 42, "SB_RAM40_4K": 1}),
        ("ecp5", {"LUT4": 5, "CCU2C": 9, "TRELLIS_FF": 21}),
        ("gowin", {"ALU": 17, "DFF": 21}),
    ],
)
def test_cells_by_type_come_from_yosys(fabric: str, some: dict[str, int]) -> None:
    cells = logs.cells(parsed(f"{fabric}-stat.json"))
    assert {name: cells[name] for name in some} == some


def test_a_missed_clock_is_all_that_is_told_of_a_long_log() -> None:
    assert logs.relevant_lines(text("missed-clock.log")) == [
        "ERROR: Max frequency for clock 'clk$SB_IO_IN_$glb_clk': 86.70 MHz (FAIL at 500.00 MHz)"
    ]


def test_an_error_of_each_tool_is_found() -> None:
    assert logs.relevant_lines(text("missing-pin.log")) == ["ERROR: Unconstrained IO:q_OBUF_O_3"]
    assert logs.relevant_lines(text("missing-file.log")) == [
        "ERROR: File `absent.v' not found or is a directory"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: Failed to expand region (0, 0) |_> (25, 31) of 5420 ICESTORM_LCs",
        "ERROR: Unable to place cell 'ram.0.0', no BELs remaining to implement cell type 'DP16KD'",
        "ERROR: Unable to find a placement location for cell 'lanes.acc_3'",
    ],
)
def test_a_core_without_room_on_its_chip_is_explained(line: str) -> None:
    assert logs.explanation(f"Info: placing\n{line}\n0 warnings, 1 error\n") == (
        "found no room on the chip for all cells of the core: try fewer --lanes, a smaller "
        "network or another --board"
    )


def test_other_errors_speak_for_themselves() -> None:
    for name in ("missed-clock.log", "missing-pin.log", "missing-file.log"):
        assert logs.explanation(text(name)) is None


def test_a_trace_is_told_to_its_end() -> None:
    log = "Info: fine\nTraceback (most recent call last):\n  File x\n\nOSError: no room\n"
    assert logs.relevant_lines(log) == log.replace("\n\n", "\n").splitlines()[1:]
    long = "Traceback\n" + "  frame\n" * 40 + "OSError: no room\n"
    assert logs.relevant_lines(long, limit=3) == ["  frame", "  frame", "OSError: no room"]


def test_without_an_error_the_last_lines_are_told() -> None:
    log = "".join(f"Info: {number}\n" for number in range(30))
    assert logs.relevant_lines(log, limit=2) == ["Info: 28", "Info: 29"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "x.json must be JSON: Expecting property name enclosed in double quotes: "
              "line 1 column 2 (char 1)"),
        ("[1]", "x.json must be a JSON object, not [1]"),
    ],
)  # fmt: skip
def test_what_is_no_object_is_refused(content: str, message: str) -> None:
    with pytest.raises(logs.LogError) as caught:
        logs.parse(content, name="x.json")
    assert str(caught.value) == message


def test_a_stat_without_cells_is_refused() -> None:
    with pytest.raises(logs.LogError) as caught:
        logs.cells({"design": []})
    assert str(caught.value) == "yosys stat must have design.num_cells_by_type"


NETLIST = """{
  "creator": "Yosys 0.70",
  "modules": {
    "top": {
      "cells": {
        "$auto$1": {
          "type": "SB_LUT4", "parameters": {
            "LUT_INIT": "10",
            "INIT_0": "1111",
            "INITVAL_3F": "1111",
            "INIT_RAM_0A": "1111"
          }, "attributes": {
            "src": "top.v:7"
          }
} } } } }
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("0.70", "0.71", True),
        ("top.v:7", "top.v:8", True),
        ("1111", "1011", True),
        ('"10"', '"11"', False),
        ("$auto$1", "$auto$2", False),
    ],
)
def test_a_netlist_is_known_by_what_is_placed(
    old: str, new: str, same: bool, tmp_path: Path
) -> None:
    """Contents of memories, lines of the source and the tool's version are not placed."""
    paths = tmp_path / "a.json", tmp_path / "b.json"
    for path, text in zip(paths, (NETLIST, NETLIST.replace(old, new)), strict=True):
        path.write_text(text, encoding="utf-8")
    first, second = map(logs.netlist_digest, paths)
    assert (first == second) is same
