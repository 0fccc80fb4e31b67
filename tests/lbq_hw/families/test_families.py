"""Families of FPGAs: what each must have, and what is said of one that lacks it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lbq_hw import bitstream, boards, families, resources, tools
from lbq_hw.boards.clocks import solve
from lbq_hw.config import CoreConfig
from lbq_hw.core.fabric.base import Fabric, fabric
from lbq_hw.families import Family, FamilyError
from lbq_hw.families.ecp5 import Ecp5
from lbq_hw.sim import prove

PAGE = (Path(__file__).parents[3] / "docs" / "families.md").read_text("utf-8")
FILES = bitstream.Files(constraints=Path(), netlist=Path(), placed=Path(), packed=Path())


class Made(Ecp5):
    """A family of which only the object was written."""

    name, title = "made", "Made"
    devices = ("MADE",)


class MadePlatform:
    device = "MADE-1"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Family:
    known = families._families() | {"made": Made()}
    monkeypatch.setattr(families, "_families", lambda: known)
    return known["made"]


@pytest.mark.parametrize("entry", Family.ENTRIES)
def test_a_family_that_lacks_an_entry_is_one_sentence(entry: str) -> None:
    lacking = type("Lacking", (Made,), {entry: None})
    name = "None" if entry == "name" else "made"
    text = f"the family {name} must have {entry}, {Family.ENTRIES[entry]}: see docs/families.md"
    with pytest.raises(FamilyError, match=f"^{re.escape(text)}$"):
        lacking()


def test_a_family_that_gives_nothing_is_asked_for_its_name() -> None:
    text = "the family Empty must have name, what a board's file calls it: see docs/families.md"
    with pytest.raises(FamilyError, match=f"^{re.escape(text)}$"):
        type("Empty", (Family,), {})()


def test_an_unknown_family_is_told_with_those_that_there_are() -> None:
    text = "family must be one of ecp5, gowin, ice40, not 'nexus'"
    with pytest.raises(FamilyError, match=f"^{text}$"):
        families.find("nexus")


def test_a_board_without_a_fabric_has_no_family() -> None:
    with pytest.raises(FamilyError, match=r"^board 'sim' has no fabric$"):
        families.of(boards.find("sim"))


def test_a_family_without_primitives_is_one_sentence(made: Family) -> None:
    text = (
        f"the family {made.name} has no primitives (lbq_hw/core/fabric/made.py): "
        "see docs/families.md"
    )
    with pytest.raises(FamilyError, match=f"^{re.escape(text)}$"):
        fabric(MadePlatform())


def test_a_fabric_without_a_pll_is_one_sentence() -> None:
    setting = solve("ehxplll", 25_000_000, 75_000_000)
    assert setting is not None
    text = "the family of the PLL ehxplll has no primitive for it: see docs/families.md"
    with pytest.raises(FamilyError, match=f"^{text}$"):
        Fabric().pll(None, setting, None, None, None)


def test_a_family_without_a_decoder_skips_what_needs_one(made: Family, tmp_path: Path) -> None:
    board = replace(boards.find("ulx3s-85f"), family=made.name)
    text = (
        "the family made has no decoder of bitstreams (lbq_hw/bitstream/made.py): "
        "see docs/families.md"
    )
    with pytest.raises(bitstream.UndecodedError, match=f"^{re.escape(text)}$"):
        bitstream.check(FILES, board, None)
    text = (
        "the family made has no netlists of bitstreams (lbq_hw/bitstream/made_netlist.py): "
        "see docs/families.md"
    )
    with pytest.raises(bitstream.MissingError, match=f"^{re.escape(text)}$"):
        bitstream.netlist(FILES, board, tmp_path)
    text = "the family made has no models of its cells (sim/cells/made.v): see docs/families.md"
    with pytest.raises(bitstream.MissingError, match=f"^{re.escape(text)}$"):
        prove.cells(board.family)


def test_a_family_that_was_never_measured_is_estimated_without_a_clock(made: Family) -> None:
    board = replace(boards.find("ulx3s-85f"), family=made.name, device="MADE-1")
    guess = resources.least(CoreConfig(), board)
    assert guess.fmax_hz == 0
    assert guess.block_rams == resources.least(CoreConfig(), boards.find("ulx3s-85f")).block_rams
    assert 1000 < guess.luts < board.luts


def test_simulation_has_the_portable_fabric() -> None:
    assert type(fabric(None)) is Fabric


@pytest.mark.parametrize("name", [name for name in boards.names() if name != "sim"])
def test_a_boards_platform_leads_to_its_family(name: str) -> None:
    board = boards.find(name)
    family = families.of_platform(board.make_platform())
    assert family is families.of(board)
    assert board.device.startswith(family.devices)


def test_no_two_families_share_a_tool_or_a_pll() -> None:
    every = families.every()
    assert len(families.plls()) == sum(len(family.plls) for family in every)
    names = [tool.name for family in every for tool in (family.placer, family.packer)]
    assert len(set(names)) == 2 * len(every)
    assert set(names) < tools.known().keys()


def test_the_page_lists_every_entry() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.M)
    assert dict(rows) == Family.ENTRIES


def test_no_product_becomes_a_multiplier_of_an_ecp5_or_ice40() -> None:
    """The streaming core has products of small numbers: they are logic there. On Gowin's chips,
    where they take more room than there is, Yosys may choose (docs/event-time.md).
    """
    for name in boards.names():
        board = boards.find(name)
        if board.family not in ("ecp5", "ice40"):
            continue
        words = families.of(board).synth(board, full=False).split()
        if board.family == "ice40":
            assert "-dsp" not in words  # only then would Yosys take them
        else:
            assert "-nodsp" in words, name
