"""Contracts hold for all inputs, their planted bugs break them, and the page lists them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from lbq_hw.sim.proofs import contract, every, link
from lbq_hw.sim.proofs.__main__ import main
from lbq_hw.sim.proofs.contract import Bug, Contract, Proof
from lbq_hw.sim.proofs.solver import prove

PAGE = Path(__file__).parents[2] / "docs" / "proofs.md"
BITS = "lbq_hw.core.scan.bits"


def test_the_fast_contracts_hold_and_their_planted_bugs_break_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--fast", "--json", "--jobs", "1"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["proven"]
    assert len(facts["proofs"]) >= 8
    assert all(one["holds"] and one["planted_bug_found"] for one in facts["proofs"])


@pytest.mark.slow
def test_every_contract_holds_and_its_planted_bug_breaks_it() -> None:
    assert [verdict.proof.name for verdict in prove(every()) if not verdict.good] == []


def proof(holds: int, bug: Bug) -> Proof:
    """That the lowest of two bits is taken, or whatever is said of it."""

    def make(code) -> Contract:
        c = Contract()
        bits = c.any(2, "bits")
        lowest, _ = code.take_lowest(bits)
        c.must((lowest != 0b11) & (bits.any() | (lowest == 0)) if holds else bits == 0)
        return c

    return Proof(name="lowest", says="", module=BITS, contract=make, bug=bug)


def test_a_contract_that_does_not_hold_is_told() -> None:
    (verdict,) = prove([proof(0, Bug(old="bits & negative,", new="bits,"))])
    assert not verdict.holds
    assert "Assert failed" in verdict.told


def test_a_planted_bug_that_changes_nothing_is_told() -> None:
    (verdict,) = prove([proof(1, Bug(old="bits & negative,", new="negative & bits,"))])
    assert verdict.holds
    assert not verdict.found


def test_every_planted_bug_is_in_its_module_once() -> None:
    for one in every():
        contract.load(one.module, one.bug)
    with pytest.raises(ValueError, match=r"^'no such text' must be in \S+ once, not 0 times$"):
        contract.load(BITS, Bug(old="no such text", new=""))


def test_names_of_proofs_are_unique() -> None:
    names = [one.name for one in every()]
    assert len(set(names)) == len(names)


def test_no_one_or_two_flipped_bits_leave_the_crc_of_a_frame_of_two_words_as_it_was() -> None:
    """By `crc-linear`, all data change alike: the register of the difference, bit by bit."""
    count = 8 * (link.SHORTEST + 2 * 4)
    changes = []
    for flipped in range(count):
        difference = 0
        for bit in range(count):
            low = difference & 1 ^ (bit == flipped)
            difference = difference >> 1 ^ (link.POLYNOMIAL if low else 0)
        changes.append(difference)
    assert all(changes)
    assert all(one != other for one, other in itertools.combinations(changes, 2))


def test_the_page_lists_every_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--markdown"]) == 0
    page = PAGE.read_text(encoding="utf-8")
    shown = page.partition("proofs --markdown -->\n")[2].partition("<!-- /proofs -->")[0]
    assert shown == capsys.readouterr().out


def test_a_proof_that_is_none_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["nothing"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(", not 'nothing'\n")
