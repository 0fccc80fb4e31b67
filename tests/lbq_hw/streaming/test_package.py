"""Packages of streaming cores."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from streams import counting_network

from lbq_hw import file
from lbq_hw.package import PackageError
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clock_hz": 0}, " has clock_hz = 0, which is not possible: build it again"),
        ({"horizon": 1 << 40}, f": horizon must be 1..65536, not {1 << 40}: build it again"),
        ({"baud": "9"}, ": stream.baud must be an integer, not '9': build it again"),
        ({"config": {}}, ": stream.config lacks the key 'lanes': build it again"),
    ],
)
def test_a_package_that_cannot_be_is_told(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file.save(counting_network(), tmp_path / "model.lbq")
    config = compile_stream(counting_network(), lanes=4, units=2, horizon=8).config
    given = {"board": "sim", "clock_hz": 12_000_000, "baud": 1_000_000, "horizon": 8}
    folder = tmp_path / "package"
    package.write(folder, **given, config=config, model=tmp_path / "model.lbq")
    path = folder / package.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(PackageError, match=f"^{re.escape(f'{path}{message}')}$"):
        package.read(folder)


def test_another_folder_is_no_package(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no stream\.json: it is not the package of a"):
        package.read(tmp_path)
