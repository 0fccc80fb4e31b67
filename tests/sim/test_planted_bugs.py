# amaranth: UnusedElaboratable=no
"""A bug in each block of the core: its bench finds it, by a comparison.

A bug is a change of one expression in the block's Verilog, such that the block still runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from lbq_hw.sim import regression
from lbq_hw.sim.benches import BENCHES
from lbq_hw.sim.benches.harness import Settings
from lbq_hw.sim.runner import Run, compile_design, missing, simulate

needs_icarus = pytest.mark.skipif(
    missing("icarus") is not None, reason=missing("icarus") or "icarus runs"
)


@dataclass(frozen=True, kw_only=True)
class Bug:
    """The first match of `right` becomes `wrong`; then `test` fails, with a text like `text`."""

    what: str
    right: str
    wrong: str
    test: str
    text: str


BUGS = {
    "uart": Bug(
        what="a bit is sent a cycle too long",
        right=r"timer == divisor;",
        wrong="timer == divisor + 1'h1;",
        test="bytes_are_sent_without_a_gap",
        text=r"tx: message \d+ differs:",
    ),
    "link": Bug(
        what="every other address of a request",
        right=r"low\[7:0\] \+ 1'h1",
        wrong="low[7:0] + 2'h2",
        test="random_requests",
        text=r"replies: message \d+ differs:",
    ),
    "memory": Bug(
        what="a run reads its first page again",
        right=r"page \+ 1'h1",
        wrong="page + 1'h0",
        test="slices_of_the_host_and_words_of_runs",
        text=r"o: message \d+ differs:",
    ),
    "tape_reader": Bug(
        what="any CRC is right",
        right=r"(match_detected = )(.* == 32'd\d+)",
        wrong=r"\1\2 || 1'h1",
        test="a_flipped_bit_is_found_by_the_crc",
        text=r"ended, error: message 0 differs:",
    ),
    "host_port": Bug(
        what="an event is counted twice",
        right=r"count_events \+ 1'h1",
        wrong="count_events + 2'h2",
        test="ticks_are_counted_from_the_second_cycle_of_busy_on",
        text=r".*: message \d+ differs:",
    ),
    "walker": Bug(
        what="rows of a path go back",
        right=r"(\$signed\(\S+ ?\)) \+ (\$signed\(row_b\))",
        wrong=r"\1 - \2",
        test="requests_and_steps_of_random_tables",
        text=r"o_request: message \d+ differs:",
    ),
    "planes": Bug(
        what="a word's upper bits do not set its flag",
        right=r"any_set = \| \{ \S+ , (\S+ ) \}",
        wrong=r"any_set = | \1",
        test="words_and_flags_after_random_writes",
        text=r"summary: message \d+ differs:",
    ),
    "scanner": Bug(
        what="offsets are subtracted",
        right=r"(read\[\d+:\d+\]) \+ offset",
        wrong=r"\1 - offset",
        test="events_of_random_requests",
        text=r"o_event: message \d+ differs:",
    ),
    "lanes": Bug(
        what="a lane subtracts its weights",
        right=r" \+ (\$signed\(addend_0\))",
        wrong=r" - \1",
        test="sums_of_random_events",
        text=r"o_sum: message \d+ differs:",
    ),
    "neurons": Bug(
        what="a neuron subtracts its bias",
        right=r"(\$signed\(shifted_0\)) \+ (\$signed\(bias_0\))",
        wrong=r"\1 - \2",
        test="levels_and_logits_of_random_sums/kind=0",
        text=r"o_planes: message \d+ differs:",
    ),
    "writer": Bug(
        what="planes lie in descending order",
        right=r"(write\[\d+:0\]) \+ (layer\[\d+:\d+\])",
        wrong=r"\1 - \2",
        test="writes_of_random_planes",
        text=r"o: message \d+ differs:",
    ),
    "accelerator": Bug(
        what="a neuron subtracts its bias",
        right=r"(\$signed\(shifted_0\)) \+ (\$signed\(bias_0\))",
        wrong=r"\1 - \2",
        test="a_network_layer_by_layer",
        text=r"tensors: message \d+ differs:",
    ),
}
FAST = ("lanes", "writer")


def run_with(bench: str, bug: Bug) -> Run:
    text = regression.verilog(bench, 0)
    changed, count = re.subn(bug.right, bug.wrong, text, count=1)
    assert count == 1
    assert changed != text
    design = compile_design(changed, top=bench)
    module = f"lbq_hw.sim.benches.{bench}"
    return simulate(design, module, variables=Settings().to_env())


def test_every_bench_has_a_bug() -> None:
    assert set(BUGS) == set(BENCHES)


@needs_icarus
@pytest.mark.parametrize(
    "bench", [b if b in FAST else pytest.param(b, marks=pytest.mark.slow) for b in BENCHES]
)
def test_the_bug_of_a_block_is_found_by_its_bench(bench: str) -> None:
    bug = BUGS[bench]
    failures = run_with(bench, bug).failures
    assert re.match(bug.text, failures.get(bug.test, "nothing differs")), bug.what
