"""docs/evidence.md: made from JSON, and up to date."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import evidence

DOCS = Path(__file__).parents[2] / "docs"
FACTS = {
    "proofs": {
        "date": "2026-11-01",
        "proven": False,
        "proofs": [
            {"holds": True, "planted_bug_found": True},
            {"holds": False, "planted_bug_found": True},
        ],
    },
    "sweep": {
        "date": "2026-11-02", "seed": 3, "networks": 1200, "shapes": 24, "cycles": 5_000_000,
        "by_kind": {"on-chip": 600, "streaming": 600}, "differences": 0,
    },
    "soak": {
        "date": "2026-11-03", "seed": 0,
        "runs": [{"kind": "external", "inferences": 500, "wrong": 0, "host_growth": 100_000,
                  "simulation_growth": 0, "good": True}],
    },
    "noise": {"date": "2026-11-04", "seed": 1, "frames": 9, "answers": 8, "wrong": 1, "refused": 2,
              "hangs": 0},
    "noise-link": {"date": "2026-11-05", "seed": 1, "frames": 9000, "words": 1200, "reads": 1100,
                   "wrong_writes": 0, "wrong_reads": 0, "refused": 3, "hangs": 0},
    "outages": {"date": "2026-11-05", "seed": 1, "deaths": 4, "power_cycles": 5, "answers": 60,
                "wrong": 0, "lost": 0, "good": True},
    "mutants": {"date": "2026-11-06", "seed": 1, "mutants": 42, "killed": 39, "equivalent": 2,
                "survived": 1, "score": 0.975, "cores": [{"core": "compact"}, {"core": "pairs"}]},
}  # fmt: skip
SAID = {
    "proofs": "| 1 of 2 hold; 2 planted bugs found | NOT GOOD |  | 2026-11-01 |",
    "sweep": "| 1,200 networks (600 on-chip, 600 streaming) on 24 cores, 5,000,000 cycles; "
    "0 differences | good | 3 | 2026-11-02 |",
    "soak": "| external: 500 inferences, 0 wrong, memory +0.1 MB (host), +0.0 MB (simulation) "
    "| good | 0 |",
    "noise": "| 9 damaged frames, 8 answers; 1 wrong, 2 refused, 0 hangs | NOT GOOD | 1 |",
    "noise-link": "| 9,000 damaged frames; 1,200 words written once and in order, 0 wrong; "
    "1,100 reads, 0 wrong; 3 refused, 0 hangs | good | 1 | 2026-11-05 |",
    "outages": "| 4 hosts died, 5 power cycles, 60 answers; 0 wrong, 0 hosts without an answer "
    "afterwards | good |",
    "mutants": "| 39 of 42 faults found (compact, pairs), 2 shown to change nothing, 1 survived: "
    "97.5 % | good |",
}


@pytest.mark.parametrize("name", SAID)
def test_each_file_is_a_line(name: str, tmp_path: Path) -> None:
    assert [kind.name for kind in evidence.KINDS] == [*SAID]
    (tmp_path / evidence.FOLDER).mkdir()
    text = evidence.page(tmp_path)
    assert text.count("not run yet") == len(SAID)
    path = tmp_path / evidence.FOLDER / f"{name}.json"
    path.write_text(json.dumps(FACTS[name]), encoding="utf-8")
    assert evidence.main([str(tmp_path)]) == 0
    text = (tmp_path / evidence.PAGE).read_text("utf-8")
    assert SAID[name] in text
    assert text.count("not run yet") == len(SAID) - 1


@pytest.mark.parametrize(
    ("name", "key"), [("noise", "hangs"), ("noise-link", "wrong_reads"), ("noise-link", "hangs")]
)
def test_one_wrong_answer_or_hang_is_not_good(name: str, key: str) -> None:
    kind = next(kind for kind in evidence.KINDS if kind.name == name)
    facts = FACTS[name] | {"wrong": 0}
    assert kind.good(facts)
    assert not kind.good(facts | {key: 1})


def test_a_planted_fault_that_nothing_finds_has_its_place_and_its_reason(tmp_path: Path) -> None:
    (tmp_path / evidence.FOLDER).mkdir()
    place = {"mode": "inv", "cell": "$5", "port": "Y", "bit": 2, "source": "a.py:7"}
    found = {"killed_by": "a test", "equivalent": False}
    same = {"killed_by": None, "equivalent": True}
    alive = {"killed_by": None, "equivalent": False}
    faults = [
        place | found | {"reason": None, "wire": "found"},
        place | same | {"reason": None, "wire": "same"},
        place | alive | {"reason": "It is so.", "wire": "x[3]"},
        place | alive | {"reason": None, "wire": ""},
    ]
    facts = {**FACTS["mutants"], "cores": [{"core": "compact", "faults": faults}]}
    path = tmp_path / evidence.FOLDER / "mutants.json"
    path.write_text(json.dumps(facts), encoding="utf-8")
    rows = [row for row in evidence.page(tmp_path).splitlines() if "`a.py:7`" in row]
    assert rows == [
        "| compact | inv | `x[3]` | `a.py:7` | It is so. |",
        "| compact | inv | `$5.Y[2]` | `a.py:7` | not explained yet |",
    ]


def test_the_page_is_what_its_files_say() -> None:
    assert (DOCS / evidence.PAGE).read_text("utf-8") == evidence.page(DOCS)
