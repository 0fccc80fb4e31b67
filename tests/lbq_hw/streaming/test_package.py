"""Packages of streaming cores."""

from __future__ import annotations

from pathlib import Path

import pytest
from streams import counting_network

from lbq_hw import file
from lbq_hw.streaming import package
from lbq_hw.streaming.compiler import compile_stream


def test_a_package_has_the_program_of_its_core(tmp_path: Path) -> None:
    network, model = counting_network(), tmp_path / "model.lbq"
    file.save(network, model)
    program = compile_stream(network, lanes=4, units=2, horizon=8)
    folder = tmp_path / "package"
    given = {"board": "sim", "clock_hz": 12_000_000, "baud": 1_000_000, "horizon": 8}
    package.write(folder, **given, config=program.config, model=model)
    assert package.found(folder)
    found = package.read(folder)
    assert found.config == program.config
    assert found.program.writes() == program.writes()
    assert (found.board, found.clock_hz, found.baud) == ("sim", 12_000_000, 1_000_000)


def test_another_folder_is_no_package(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no stream\.json: it is not the package of a"):
        package.read(tmp_path)
