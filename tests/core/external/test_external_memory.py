# amaranth: UnusedElaboratable=no
"""The external memory as a whole, from reset on."""

from __future__ import annotations

import pytest
from amaranth.back import verilog
from core.external.simulated import READ, RUN, SMALL_16, SMALL_32, TEST, WAIT, WRITE, run

from lbq_hw.chips import TANG_NANO_20K
from lbq_hw.core.external.calibrate import Calibrate
from lbq_hw.core.external.external_memory import ExternalMemory
from lbq_hw.core.external.pattern import compute
from lbq_hw.sim.verilog import ports


def test_calibration_leaves_all_words_but_the_last_as_they_were() -> None:
    words = [address * 7 & 0xFFFF for address in range(SMALL_16.words)]
    first = SMALL_16.words - Calibrate.WORDS
    slices = [first // 2 - 1, first // 2, SMALL_16.words // 2 - 1]
    done = run([*((READ, place) for place in slices), (RUN, 10)], words=words)
    end = SMALL_16.words
    last = [compute(address, 16) for address in (first, first + 1, end - 2, end - 1)]
    assert done.slices == [
        words[first - 1] << 16 | words[first - 2],
        last[1] << 16 | last[0],
        last[3] << 16 | last[2],
    ]
    assert [word for _, _, word in done.runs()[0]] == words[:10]


def test_accesses_runs_and_tests_follow_each_other_at_once() -> None:
    script = [(WRITE, 3, 0x11112222), (READ, 3), (RUN, 1500), (TEST, 60), (RUN, 600), (READ, 60)]
    script += [(WRITE, 3, 0x33334444), (TEST, 2), (READ, 2), (READ, 3), (RUN, 3), (WRITE, 0, 5)]
    done = run([*script, (READ, 0)], words=[0] * SMALL_16.words)
    assert done.violations == []
    assert done.differing == [0, 0]
    left = [compute(address, 16) ^ 0xFFFF for address in range(122)]
    assert done.slices == [
        0x11112222,
        left[121] << 16 | left[120],
        left[5] << 16 | left[4],
        0x33334444,
        5,
    ]
    assert [word for _, _, word in done.runs()[1]][:122] == left


def test_a_slice_beyond_a_small_memory_wraps() -> None:
    done = run([(WRITE, SMALL_32.words + 5, 0xABCDEF01), (READ, 5)], chip=SMALL_32)
    assert done.slices == [0xABCDEF01]


def test_nothing_is_taken_where_calibration_fails() -> None:
    done = run([(READ, 0)], access=13_000, hold=700)
    assert done.failed
    assert (done.slices, done.cycles("start")) == ([], [])


def test_a_start_waits_for_less_than_an_interval() -> None:
    script = [step for wait in (1, 100, 299, 450, 606) for step in ((WAIT, wait), (RUN, 1))]
    done = run(script)
    stops, starts = done.cycles("stop"), done.cycles("start")
    gaps = [start - stop for stop, start in zip(stops, starts[1:], strict=False)]
    # Two pages are read before words are forgotten; then comes the next refresh.
    assert all(
        gap < 1100 + 607 + wait for gap, wait in zip(gaps, (100, 299, 450, 606), strict=True)
    )


def test_the_memory_of_a_board_converts_to_verilog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    memory = ExternalMemory(chip=TANG_NANO_20K, clock_hz=60_000_000)
    text = verilog.convert(memory, ports=ports(memory))
    assert "output [31:0] bus__dq_o" in text
