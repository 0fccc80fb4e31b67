"""Second sources: pins, IO standards, names of boards and USB devices of other projects."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lbq_hw import boards
from lbq_hw.boards import sources
from lbq_hw.boards.command import main

FABRICS = boards.fabrics()
UNSAID = {  # signals that no second source has
    "ice40-hx8k": ["rx", "tx"],
    "tang-nano-20k": [
        f"sdram {name}"
        for name in ("clk", "clk_en", "cs", "we", "ras", "cas", "ba", "a", "dq", "dqm")
    ],
}
LOADER = sources.facts()["openFPGALoader"]


@pytest.mark.parametrize("name", FABRICS)
def test_the_second_source_agrees_on_every_signal_that_it_has(name: str) -> None:
    rows = sources.compare(boards.find(name))
    assert [row for row in rows if row.their_pins and not row.agrees] == []
    assert [row.signal for row in rows if not row.their_pins] == UNSAID.get(name, [])
    said = sources.facts()["boards"][name]["signals"]
    assert set(said) <= {row.signal for row in rows}


def test_another_pin_and_another_standard_are_found() -> None:
    (clock, *_) = sources.compare(boards.find("ulx3s-12f"))
    assert clock.agrees
    assert not replace(clock, pins="G3").agrees
    assert not replace(clock, standard="LVCMOS18").agrees
    dq = next(row for row in sources.compare(boards.find("ulx3s-12f")) if row.signal == "sdram dq")
    turned = " ".join(reversed(dq.pins.split()))
    assert replace(dq, pins=turned).agrees
    assert not replace(dq, signal="sdram a", pins=turned).agrees


def test_every_origin_is_a_repository_with_a_commit() -> None:
    origins = sources.facts()["origins"]
    assert {board["origin"] for board in sources.facts()["boards"].values()} <= set(origins)
    for origin in origins.values():
        assert origin["repository"].startswith("https://github.com/")
        assert re.fullmatch("[0-9a-f]{40}", origin["commit"])


@pytest.mark.parametrize("name", FABRICS)
def test_openfpgaloader_knows_the_board_and_finds_it_on_the_bus(name: str) -> None:
    board = boards.find(name)
    if not board.program.startswith("openFPGALoader"):
        assert board.program.split()[0] in ("iceprog", "icesprog", "openocd")
        return
    named = re.findall(r" -b (\S+)", board.program)
    if not named:  # by cable, with the device that it is told
        told = re.fullmatch(
            r"openFPGALoader -c (\S+) --vid 0x(\w+) --pid 0x(\w+) {}", board.program
        )
        assert told is not None
        assert told[1] in LOADER["usb"]
        assert board.usb == f"{told[2]}:{told[3]}"
        return
    assert [LOADER["usb"][LOADER["boards"][one]] for one in named] == re.findall(
        r"\w{4}:\w{4}", board.usb
    )


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--second-sources"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(FABRICS) + 2
    assert "| `tang-nano-9k` | litex-boards | clock, rx, tx, led | none | none |" in lines
