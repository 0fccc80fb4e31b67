"""Where jobs run: in this process, or on workers that have the same sources."""

from __future__ import annotations

import pytest

from lbq_hw import engine

PARTS = ("isa", "config.py")


def test_two_workers_do_what_one_process_does() -> None:
    alone = list(engine.results(abs, range(-5, 0), parts=PARTS, workers=1))
    assert alone == [5, 4, 3, 2, 1]
    assert sorted(engine.results(abs, range(-5, 0), parts=PARTS, workers=2)) == sorted(alone)


def test_two_clusters_run_on_one_machine_at_a_time() -> None:
    first = engine.results(abs, [-1, -2], parts=PARTS, workers=2)
    found = {next(first)}
    # A port that both want is a warning, and so an error here.
    assert sorted(engine.results(abs, [-3, -4], parts=PARTS, workers=2)) == [3, 4]
    assert found | {*first} == {1, 2}


def test_a_worker_with_other_sources_is_refused() -> None:
    assert engine._same(engine.sources(PARTS), PARTS, abs, -1) == 1
    with pytest.raises(engine.VersionError, match="another version of the project"):
        engine._same(engine.sources(("isa",)), PARTS, abs, -1)
