"""Builds that are joined to the measurements."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import pytest

from lbq_hw import boards, sizing, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.file import load

measured = import_module("lbq_hw.resources.measured")  # the package has a function of this name


def test_a_build_replaces_that_of_the_same_core_from_before_a_field_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = asdict(CoreConfig(lanes=8))
    older = {name: value for name, value in config.items() if name != "zero_resets"}
    kept = {"board": "icebreaker", "luts": 1, "block_rams": 1, "fmax_mhz": None, "small": 1}
    file = tmp_path / "measured.json"
    points = [kept | {"config": older}, kept | {"config": older | {"lanes": 16}}]
    file.write_text(json.dumps({"builds": points}), encoding="utf-8")
    network = load(zoo.find("digits"))
    opening = sizing.size(network, boards.find("icebreaker")).opening
    assert opening is not None
    build = {"board": "icebreaker", "config": config, "opening": asdict(opening)}
    (tmp_path / "core.json").write_text(json.dumps(build), encoding="utf-8")
    used = {"ICESTORM_LC": {"available": 5280, "used": 4321}}
    placed = {"utilization": used, "fmax": {"clk": {"achieved": 34.56, "constraint": 33}}}
    (tmp_path / "place.json").write_text(json.dumps(placed), encoding="utf-8")
    (tmp_path / "seeds.json").write_text('{"seed": 7, "seeds": {}}', encoding="utf-8")
    (tmp_path / "netlist.json").write_text('{"modules": {}}', encoding="utf-8")
    monkeypatch.setattr(measured, "MEASURED", file)
    measured.measured.cache_clear()
    try:
        measured.add(tmp_path, small=lambda _: 5.0, door=lambda door, _: (door.results, 0))
        found = [(p["config"]["lanes"], p["luts"], p["fmax_mhz"]) for p in measured.measured()]
        board, core = boards.find("icebreaker"), CoreConfig(lanes=8)
        netlist = sha256(b'{"modules": {}}').hexdigest()
        assert measured.met(core, board) == measured.Met(33e6, 7, netlist)
        assert measured.met(core.with_(lanes=16), board) is None
        assert measured.met(core, boards.find("icesugar")) is None
    finally:
        measured.measured.cache_clear()
    assert found == [(8, 4321 - opening.results, 34.6), (16, 1, None)]
