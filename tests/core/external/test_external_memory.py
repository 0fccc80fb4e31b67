# amaranth: UnusedElaboratable=no
"""The external memory as a whole, from reset on."""

from __future__ import annotations

import pytest
from amaranth.back import verilog
from core.external.simulated import DRAIN, READ, SMALL_16, TEST, WRITE, run

from lbq_hw.core.external.calibrate import Calibrate
from lbq_hw.external.chips import TANG_NANO_20K
from lbq_hw.core.external.external_memory import ExternalMemory
from lbq_hw.core.external.pattern import compute
from sim.verilog import ports


def test_calibration_leaves_all_words_but_the_last_as_they_were() -> None:
    words = [address * 7 & 0xFFFF for address in range(SMALL_16.words)]
    first = SMALL_16.words - Calibrate.WORDS - 10
    done = run([(READ, first, 73), (READ, 0, 9), (DRAIN,)], words=words)
    last = [compute(address, 16) for address in range(first + 10, SMALL_16.words)]
    assert done.words == words[first : first + 10] + last + words[:10]


def test_requests_and_tests_follow_each_other() -> None:
    script = [(WRITE, 3, 0x1111), (READ, 3, 0), (DRAIN,), (TEST, 60), (READ, 0, 60), (DRAIN,)]
    script += [(WRITE, 3, 0x2222), (TEST, 2), (READ, 2, 1), (DRAIN,)]
    done = run(script)
    assert done.violations == []
    assert done.differing == [0, 0]
    left = [compute(address, 16) ^ 0xFFFF for address in range(61)]
    assert done.words == [0x1111, *left, left[2], 0x2222]


def test_nothing_is_taken_where_calibration_fails() -> None:
    done = run([(READ, 0, 0), (DRAIN,)], access=13_000, hold=700)
    assert done.failed
    assert (done.cycles("asked"), done.words) == ([], [])


def test_the_memory_of_a_board_converts_to_verilog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    memory = ExternalMemory(chip=TANG_NANO_20K, clock_hz=60_000_000)
    text = verilog.convert(memory, ports=ports(memory))
    assert "output [31:0] bus__dq_o" in text
