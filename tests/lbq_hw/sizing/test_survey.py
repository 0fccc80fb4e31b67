"""What fits where: one line per board, as sizing alone would say."""

from __future__ import annotations

import json

import pytest

from lbq_hw import boards, plan, sizing, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.file import load
from lbq_hw.network import Network
from lbq_hw.resources import Estimate
from lbq_hw.sizing import Refusal, SizedCore, on_tape, survey
from lbq_hw.sizing.activity import Activity, activity


def of(network_name: str) -> Activity:
    return activity(load(zoo.find(network_name)))


def fake(network: Network, board: boards.Board, **options: object) -> SizedCore | Refusal:
    """No board holds it but two; the options are what was asked for."""
    assert (network.name, options["lanes"]) == ("digits", 8)
    if board.name not in ("ulx3s-85f", "icebreaker"):
        return Refusal([f"{board.title} is full"])
    config = CoreConfig(lanes=16, word=16, summary=8, layers=8)
    if board.sdram:
        config = config.with_external()
    guess = Estimate(luts=4000, block_rams=20, sprams=0, fmax_hz=0.0)
    busy = of("digits")
    return SizedCore(
        config=config,
        board=board.name,
        clock_hz=board.target_hz,
        estimate=guess,
        cycles=7500.0,
        activity=busy,
    )


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "attempt", fake)
    monkeypatch.setattr(survey.os, "cpu_count", lambda: 1)


@pytest.mark.usefixtures("faked")
def test_every_board_with_a_fabric_has_a_line() -> None:
    found = survey.survey(load(zoo.find("digits")), busy=of("digits"), options={"lanes": 8})
    assert list(found) == boards.fabrics()
    fits = [name for name, core in found.items() if isinstance(core, SizedCore)]
    assert fits == ["icebreaker", "ulx3s-85f"]
    assert found["orangecrab"] == Refusal(["OrangeCrab r0.2 25F is full"])


@pytest.mark.usefixtures("faked")
def test_the_table_fits_a_terminal_and_says_what_is_short(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--model", "digits", "--lanes", "8"]
    assert plan.main(arguments) == 0
    out = capsys.readouterr().out
    assert "versa-ecp5 does not hold it: Versa ECP5 is full\n" in out
    (row,) = [line for line in out.splitlines() if line.strip().startswith("ulx3s-85f ")]
    assert row.split() == [
        "ulx3s-85f",
        "88.4",
        "10,000",
        "16",
        "75",
        "MHz",
        "4,000",
        "20",
        "SDRAM",
        "3",
    ]
    assert len(row.rstrip()) <= 80
    assert plan.main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"] == "digits"
    (line,) = [line for line in facts["boards"] if line["board"] == "ulx3s-85f"]
    link = line.pop("link_seconds")
    assert line.pop("images_per_second") == 1 / (link + 1e-4)
    assert line == {
        "board": "ulx3s-85f", "fits": True, "short": [], "lanes": 16, "memory": "external",
        "clock_hz": 75_000_000, "luts": 4000, "block_rams": 20, "cycles": 7500.0, "seconds": 1e-4,
        "baud": 3_000_000,
    }  # fmt: skip
    assert [line["board"] for line in facts["boards"] if line["fits"]] == [
        "icebreaker",
        "ulx3s-85f",
    ]


def test_a_line_is_what_sizing_says() -> None:
    network, busy = load(zoo.find("digits")), of("digits")
    found = survey._sized((network, busy, {"lanes": 8}, ["ulx3s-12f"]))
    assert found == {"ulx3s-12f": sizing.size(network, boards.find("ulx3s-12f"), lanes=8)}


def test_a_clock_that_no_board_makes_is_told_for_each() -> None:
    network, busy = load(zoo.find("digits")), of("digits")
    found = survey._sized((network, busy, {"lanes": 8, "target_hz": 900_000_000}, ["ulx3s-12f"]))
    said = "the clock must be one that the PLL makes of 25 MHz (3.125 to 400 MHz), not 900 MHz"
    assert found == {"ulx3s-12f": Refusal([said])}


@pytest.mark.slow
def test_several_processes_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan.main(["--model", "mnist-4bit", "--lanes", "8", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    network = load(zoo.find("mnist-4bit"))
    evaluation = json.loads(zoo.evaluation("mnist-4bit").read_text("utf-8"))
    busy = activity(network, evaluation=evaluation)
    found = survey.survey(network, busy=busy, options={"lanes": 8}, workers=1)
    seconds = [core.seconds if isinstance(core, SizedCore) else None for core in found.values()]
    assert [line["seconds"] for line in facts["boards"]] == seconds


def test_weights_that_no_memory_holds_are_told_before_anything_is_planned() -> None:
    network = load(zoo.find("cifar10-resnet20"))
    board = boards.find("colorlight-i9")
    busy = Activity(
        accumulations=(1.0,) * len(network.layers),
        share=0.5,
        shares=(0.5,) * len(network.layers),
        source="assumed",
    )
    found = sizing.attempt(network, board, busy=busy)
    assert isinstance(found, Refusal)
    assert found.reasons == ["the weights need 17,295,754 bytes, its external memory has 8,388,608"]
    assert not on_tape.holds(network, board)
