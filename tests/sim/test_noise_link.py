"""Frames damaged on the line of link and UART: requests are executed once, in order, or not."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from simulators import CACHE, needs_verilator

from lbq_hw.sim import ledger, noise, noise_line, noise_link
from lbq_hw.sim.noise_link import LinkNoise

pytestmark = needs_verilator


@dataclass(frozen=True, kw_only=True)
class Bug:
    """Each match of `right` in the Verilog becomes `wrong`; `finds` says what finds it."""

    right: str
    wrong: str
    finds: str


BUGS = {
    "any CRC is right": Bug(
        right=r"= wrong \| frame_arrives;", wrong="= frame_arrives;", finds="wrong_writes"
    ),
    "a repeated write is executed again": Bug(
        right=r"& fresh;", wrong="& accepted;", finds="wrong_writes"
    ),
    "a request is executed whatever its number": Bug(
        right=r"= synced & \S+ ;", wrong="= synced;", finds="wrong_writes"
    ),
    "after a wrong CRC, every CRC is wrong": Bug(
        right=r"wrong <= (\S+) ;", wrong=r"wrong <= \1 | wrong;", finds="hangs"
    ),
    "a word is read from the address of the first": Bug(
        right=r"low\[7:0\] \+ 1'h1", wrong="low[7:0] + 1'h0", finds="wrong_reads"
    ),
}


@cache
def verilog() -> str:
    return noise_link.verilog()


@cache
def program() -> Path:
    return noise_link.build(verilog(), cache=CACHE)


def test_every_request_is_executed_once_and_in_order() -> None:
    found = noise_link.run(program(), frames=500, rate=0.3, seed=5)
    assert found.frames >= 500
    assert set(found.damaged) == set(noise_line.KINDS)
    assert found.good
    assert (found.wrong_reads, found.wrong_writes, found.hangs) == (0, 0, 0)
    assert found.writes > 50
    assert found.reads > 50
    assert found.words > found.writes
    assert 0 < found.slowest < 5
    assert found.spoken().startswith(f"{found.frames:,} damaged frames (")


def test_a_run_is_the_same_again() -> None:
    once, again = (noise_link.run(program(), frames=50, rate=0.4, seed=6) for _ in range(2))
    assert once == again


def test_the_log_holds_a_batch() -> None:
    most = max(noise_link.LONGEST, noise_link.STREAMED * noise_link.SHORT)
    assert noise_link.CALLS * most <= ledger.ENTRIES


@pytest.mark.parametrize("what", BUGS)
def test_a_planted_bug_is_found(what: str) -> None:
    bug = BUGS[what]
    text, count = re.subn(bug.right, bug.wrong, verilog())
    assert count
    built = noise_link.build(text, cache=CACHE)
    found = noise_link.run(built, frames=300, rate=0.3, seed=5)
    assert not found.good
    assert getattr(found, bug.finds)


def test_the_command_ends_with_1_if_something_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = LinkNoise(seed=3, damaged={"lost": 9}, wrong_writes=2)
    monkeypatch.setattr(noise_link, "build", lambda: Path("nowhere"))
    monkeypatch.setattr(noise_link, "run", lambda *_, **__: wrong)
    assert noise.main(["--link", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["frames"], said["wrong_writes"], said["seed"]) == (9, 2, 3)
