"""``lbq_hw.host`` with a tape, on a model of a core with external memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from host.memory_model import FAILED, CoreMemory, MemoryTransport
from tapes import drawn

from lbq_hw import file, package, zoo
from lbq_hw.compiler import compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.host import SerialTransport
from lbq_hw.host.__main__ import main
from lbq_hw.package import Package


class Line(MemoryTransport):
    """A line to the model; its clock stands still."""

    repeats, baud, simulated = 0, 3_000_000, True

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def now(self) -> float:
        return 0.0


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Package:
    folder = tmp_path_factory.mktemp("tape")
    network, config = drawn(3)
    file.save(network, folder / "net.lbq")
    return write(folder, config, folder / "net.lbq", compile_network(network, config).tape)


def write(folder: Path, config: CoreConfig, model: Path, tape: bytes = b"") -> Package:
    return package.write(
        folder / "package", board="sim", config=config, model=model, clock_hz=12_000_000,
        baud=3_000_000, baked=False, bitstream=None, tape=tape,
    )  # fmt: skip


@pytest.fixture
def cells(packed: Package, monkeypatch: pytest.MonkeyPatch) -> CoreMemory:
    found = CoreMemory(packed.config)
    monkeypatch.setattr(SerialTransport, "open", lambda *_, **__: Line(found))
    return found


def test_a_memory_test_says_how_many_words_differ(
    packed: Package, cells: CoreMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--port", "any", "--package", str(packed.folder), "--memory-test"]
    assert main(arguments) == 0
    captures = "captures: 1 and 2 passed, 1 in use\n"
    assert capsys.readouterr() == (f"memory test: no word differs, 0.00 ns\n{captures}", "")
    cells.stuck = {5: 1, 6: 1}
    assert main(arguments) == 1
    assert capsys.readouterr() == (f"memory test: 4 words DIFFER, 0.00 ns\n{captures}", "")
    assert main([*arguments, "--json"]) == 1
    facts = {"board": "sim", "config": packed.config.digest, "differing_words": 4, "seconds": 0.0}
    facts["captures"] = {"passed": [1, 2], "used": 1}
    assert json.loads(capsys.readouterr().out) == facts
    assert cells.calibrations == 0


def test_a_memory_that_did_not_work_is_calibrated_again_if_asked_for(
    packed: Package, cells: CoreMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    cells.state = FAILED
    arguments = ["--port", "any", "--package", str(packed.folder), "--memory-test", "--recalibrate"]
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""
    assert cells.calibrations == 1


def test_a_memory_test_needs_a_memory_and_no_inputs(
    packed: Package, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--package", str(packed.folder), "--memory-test", "--images", "3"]) == 2
    text = "error: --memory-test takes no inputs: leave out --selftest and all other inputs\n"
    assert capsys.readouterr().err == text
    without = write(tmp_path, CoreConfig(lanes=8), zoo.find("digits"))
    assert main(["--package", str(without.folder), "--memory-test"]) == 2
    text = f"error: the core of {without.folder} has no external memory to test\n"
    assert capsys.readouterr().err == text
    assert main(["--package", str(without.folder), "--selftest", "--recalibrate"]) == 2
    text = f"error: the core of {without.folder} has no external memory to calibrate\n"
    assert capsys.readouterr().err == text


def test_a_memory_that_does_not_work_is_told_in_one_line(
    packed: Package, cells: CoreMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    cells.state = 4
    assert main(["--port", "any", "--package", str(packed.folder), "--memory-test"]) == 2
    text = (
        "error: the external memory does not work: its calibration found no timing at which words "
        "come back; check that the package is for this board, and power the board off and on\n"
    )
    assert capsys.readouterr().err == text
