# amaranth: UnusedElaboratable=no
"""PassControl, cycle by cycle: when a pass begins, and every way in which a run ends."""

from __future__ import annotations

import pytest
from core.harness import Bench, ones

from lbq_hw.core.external.pass_control import PassControl
from lbq_hw.isa import Error
from lbq_hw.isa.tape import MOST_PASSES

IN = ("start", "allow", "waiting", "ended", "tape_error", "paused", "over", "idle", "stray",
      "walk_error")  # fmt: skip
OUT = ("begin", "begun", "resting", "done", "waits", "stop", "finished", "error")


def run(length: int, *, limit: int = 20_000, **cycles: dict) -> dict[str, list[int]]:
    """``_5={...}`` drives something in cycle 5, ``from_5={...}`` from then on."""
    control = PassControl()
    bench = Bench(control)
    script, held = [], {}
    for cycle in range(length):
        held = held | cycles.get(f"from_{cycle}", {})
        script.append(held | cycles.get(f"_{cycle}", {}))
    bench.script({name: getattr(control, name) for name in IN}, script)
    seen = bench.probe(**{name: getattr(control, name) for name in OUT})
    bench.run(limit=limit)
    return seen


def test_a_pass_begins_when_it_is_allowed_and_the_one_before_is_done() -> None:
    seen = run(
        40, _0={"start": 1}, _3={"allow": 1}, _5={"allow": 1}, from_9={"paused": 1},
        from_10={"paused": 0}, from_15={"paused": 1}, _20={"allow": 1}, from_22={"paused": 0},
        from_25={"ended": 1}, from_30={"over": 1},
    )  # fmt: skip
    assert ones(seen["begin"]) == [4, 9, 21]
    assert [cycle for cycle in range(40) if not seen["resting"][cycle]] == [
        *range(5, 9), *range(10, 15), *range(22, 30),
    ]  # fmt: skip
    # In the cycle before each of these, the next pass was waited for: from the start, and from 15.
    assert ones(seen["waits"]) == [*range(1, 5), *range(16, 22)]
    assert ones(seen["finished"]) == [30]
    assert seen["begun"][39] == seen["done"][39] == 3
    assert (seen["error"][30], ones(seen["stop"])) == (0, [])


def test_the_run_ends_with_end_if_that_comes_last() -> None:
    start = {"_0": {"start": 1}, "_3": {"allow": 1}, "from_9": {"over": 1}}
    assert ones(run(30, **start, from_20={"ended": 1})["finished"]) == [20]


def ends(code: Error, at: int, done: int, length: int = 40, **cycles: dict) -> None:
    """The run stops in the cycle after an error, and ends when all is idle."""
    seen = run(length, from_0={"idle": 1}, _0={"start": 1, "idle": 1}, **cycles)
    assert ones(seen["stop"])[0] == at + 1
    [finished] = ones(seen["finished"])
    assert finished > at
    assert seen["error"][finished] == code
    assert seen["done"][finished] == done


def test_what_waits_for_each_other_is_found_in_the_first_cycle_in_which_both_wait() -> None:
    ends(Error.ORDER, 5, 0, from_5={"waiting": 1})
    ends(Error.ORDER, 5, 0, from_5={"ended": 1})
    ends(Error.ORDER, 13, 1, _3={"allow": 1}, from_6={"waiting": 1}, from_12={"paused": 1})
    ends(Error.ORDER, 13, 1, _3={"allow": 1}, from_6={"ended": 1}, from_12={"paused": 1})
    ends(Error.ORDER, 13, 1, _3={"allow": 1}, from_6={"waiting": 1}, from_12={"over": 1})
    ends(Error.ORDER, 13, 1, _3={"allow": 1}, _6={"allow": 1}, from_12={"over": 1})
    ends(Error.ORDER, 17, 1, _3={"allow": 1}, from_12={"over": 1}, _16={"allow": 1})


def test_the_first_error_of_tape_or_walker_ends_the_run() -> None:
    ends(Error.CRC, 7, 0, from_7={"tape_error": Error.CRC})
    ends(Error.TAPE, 7, 0, _3={"allow": 1}, from_7={"tape_error": Error.TAPE, "over": 0})
    ends(Error.RUN, 9, 0, _3={"allow": 1}, from_9={"over": 1, "walk_error": Error.RUN})
    ends(Error.NONE, 9, 0, _3={"allow": 1}, _9={"stray": 1})


def test_an_old_error_of_the_walker_does_not_count_before_a_pass_has_begun() -> None:
    old = {"over": 1, "walk_error": Error.RUN}
    seen = run(20, from_0={"idle": 1} | old, _0={"start": 1} | old)
    assert not any(seen["stop"] + seen["finished"])


def test_after_an_error_the_run_ends_when_the_walker_is_idle_and_no_pass_begins() -> None:
    seen = run(
        60, from_0={"idle": 1}, _0={"start": 1, "idle": 1}, _3={"allow": 1}, from_4={"idle": 0},
        _6={"allow": 1}, from_9={"tape_error": Error.CRC}, from_20={"paused": 1},
        from_30={"idle": 1, "paused": 0, "over": 1},
    )  # fmt: skip
    assert ones(seen["begin"]) == [4]
    assert ones(seen["finished"]) == [30]
    assert seen["done"][30] == 0


@pytest.mark.slow
def test_more_passes_than_can_be_counted_are_refused() -> None:
    control = {"_0": {"start": 1}, "from_1": {"allow": 1}, "from_5": {"paused": 1}}
    seen = run(MOST_PASSES + 4, limit=MOST_PASSES + 10, **control)
    assert ones(seen["stop"])[0] == MOST_PASSES + 2
