"""The flow's logic with fake tools: order, cache, seeds, and what a failure leaves behind."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from lbq_hw import boards, flow, package, resources, zoo
from lbq_hw.boards import Board
from lbq_hw.config import CoreConfig
from lbq_hw.flow import FlowError, Job, Options, Step, ToolError, steps
from lbq_hw.flow.runner import expected
from lbq_hw.flow.steps import in_blocks, without_zeros
from lbq_hw.resources.measured import Met
from lbq_hw.tools import Found, known, logs
from lbq_hw.tools.process import call
from tests.lbq_hw.fake_tools import Fakes

ROOT = Path(__file__).parents[3]
BOARD = boards.find("ulx3s-45f")
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system does not tell what a process uses"
)


class Record:
    """A display that remembers."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def start(self, step: Step, expected: float) -> None:
        assert expected > 0
        self.ran.append(step.name)

    def done(self, step: Step, seconds: float, note: str, *, cached: bool) -> None:
        assert cached == (step.name not in self.ran)
        assert seconds >= 0
        assert note


def write_design(job: Job, work: Path) -> str:
    """Stands in for the step rtl, which takes seconds."""
    (work / "top.v").write_text(f"// {job.config.digest}", encoding="utf-8")
    (work / "top.lpf").write_text("", encoding="utf-8")
    (work / "rtl.json").write_text('{"baked": true}', encoding="utf-8")
    return "a design"


def skip(_job: Job, work: Path) -> str:
    """Stands in for the simulation."""
    (work / "simulate.json").write_text('{"skipped": "a test"}', encoding="utf-8")
    return "skipped"


def skip_bits(_job: Job, work: Path) -> str:
    """Stands in for the decoder, which the fake tools' bits mean nothing to."""
    (work / "bits.json").write_text('{"skipped": "a test"}', encoding="utf-8")
    return "skipped"


QUICK = {"rtl": write_design, "simulate": skip, "bits": skip_bits}
STEPS = tuple(replace(step, run=QUICK.get(step.name, step.run)) for step in flow.STEPS)


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fakes:
    folder = tmp_path / "tools"
    folder.mkdir()
    return Fakes(folder, monkeypatch)


def build(
    folder: Path, *, first: str = "load", last: str = "report", fresh: bool = False, **options: int
) -> list[str]:
    """Run the flow; the steps that really ran."""
    chosen = Options(model=zoo.find("digits"), lanes=8, freq=80.0, images=1, **options)
    display = Record()
    flow.run(Job(chosen, BOARD, folder), STEPS, display, first=first, last=last, fresh=fresh)
    return display.ran


def test_a_build_ends_in_a_package_and_a_second_one_runs_nothing(
    tmp_path: Path, fakes: Fakes
) -> None:
    folder = tmp_path / "build"
    assert sorted(build(folder)) == sorted(flow.names())
    assert fakes.calls() == ["yosys", "nextpnr-ecp5", "ecppack"]
    made = package.read(folder / "package")
    assert made.bitstream is not None
    assert made.bitstream.read_text("utf-8").startswith("bits of seed 1: netlist of // ")
    assert (made.board, made.clock_hz, made.baked) == (BOARD.name, 80_000_000, True)
    assert (folder / "report" / "report.html").is_file()
    answers, link = (
        json.loads((folder / "report" / f"{part}.json").read_text("utf-8"))
        for part in ("answers", "link")
    )
    assert (answers["dataset"], answers["images"], answers["drawn_of"]) == ("digits", 359, None)
    assert BOARD.bridge is not None
    assert made.rates == BOARD.bridge.rates
    assert (link["baud"], link["latency"]) == (3_000_000, 0.001)
    assert build(folder) == []
    assert fakes.calls() == []


def test_the_same_inputs_give_the_same_bits_in_another_folder(tmp_path: Path, fakes: Fakes) -> None:
    for name in ("a", "b"):
        build(tmp_path / name, last="pack")
    assert (tmp_path / "a/top.bit").read_bytes() == (tmp_path / "b/top.bit").read_bytes()
    assert len(fakes.calls()) == 6


def test_only_what_depends_on_a_change_runs_again(tmp_path: Path, fakes: Fakes) -> None:
    build(tmp_path)
    assert build(tmp_path, seed=5) == ["place", "pack", "bits", "package", "report"]
    (tmp_path / "netlist.json").write_text("spoilt", encoding="utf-8")
    assert build(tmp_path, seed=5) == ["synth"]  # its product is as before, so the rest is, too
    fakes.calls()
    fakes.version("2.0.0")
    assert "synth" in build(tmp_path, seed=5)
    assert fakes.calls() == ["yosys", "nextpnr-ecp5", "ecppack"]


def test_from_and_until_choose_steps(tmp_path: Path, fakes: Fakes) -> None:
    assert build(tmp_path, last="compile") == ["load", "fit", "compile"]
    message = (
        f"step 'check' has no saved product for these inputs in {tmp_path}: start with --from check"
    )
    with pytest.raises(FlowError, match=f"^{re.escape(message)}$"):
        build(tmp_path, first="synth", fresh=True)
    build(tmp_path, last="synth")
    assert build(tmp_path, first="synth", last="place", fresh=True) == ["synth", "place"]
    with pytest.raises(FlowError, match=r"^step 'synth' must not come after step 'fit'$"):
        build(tmp_path, first="synth", last="fit")
    assert fakes.calls().count("ecppack") == 0


def test_the_plan_tells_what_is_saved(tmp_path: Path, fakes: Fakes) -> None:
    assert fakes.calls() == []
    job = Job(Options(model=zoo.find("digits"), lanes=8, freq=80.0, images=1), BOARD, tmp_path)
    build(tmp_path, last="fit")
    states = {step.name: state for step, state in flow.plan(job, STEPS)}
    assert (states["load"], states["fit"]) == ("saved", "saved")
    assert re.fullmatch(r"to be run, about \d+ s", states["synth"])
    assert list(states) == flow.names()


@pytest.mark.parametrize(
    ("config", "seconds"), [({}, 50), ({"external": 0}, 50), ({"external": 16}, 150)]
)
def test_a_step_is_expected_to_take_as_long_as_the_last_time_or_as_such_cores_do(
    tmp_path: Path, config: dict[str, int], seconds: float
) -> None:
    job = Job(Options(model=zoo.find("digits")), BOARD, tmp_path)
    step = Step(name="place", run=steps.place, seconds=20, seconds_per_lut=0.01, external=3)
    assert expected(job, step, {}) == 20
    core = {"estimate": {"luts": 3000}, "config": config}
    (job.folder / "core.json").write_text(json.dumps(core), encoding="utf-8")
    assert expected(job, step, {}) == seconds
    assert expected(job, step, {"place": {"seconds": 7}}) == 7


def test_place_and_route_is_expected_to_take_longer_on_a_crowded_chip(tmp_path: Path) -> None:
    """Digits on a Tang Nano 9K took 9 minutes, where 1:57 was said."""
    job = Job(Options(model=zoo.find("digits")), boards.find("tang-nano-9k"), tmp_path)
    (place,) = (step for step in flow.STEPS if step.name == "place")
    core = {"estimate": {"luts": 8125}, "config": {}}
    (job.folder / "core.json").write_text(json.dumps(core), encoding="utf-8")
    assert 8 * 60 < expected(job, place, {}) < 10 * 60
    core["estimate"]["luts"] = 6000
    (job.folder / "core.json").write_text(json.dumps(core), encoding="utf-8")
    assert expected(job, place, {}) == 20 + 0.012 * 6000


def test_a_missed_clock_is_tried_with_other_seeds(tmp_path: Path, fakes: Fakes) -> None:
    fakes.fmax(seed1=70.0, seed2=79.9, seed3=80.5)
    build(tmp_path)
    assert fakes.calls() == ["yosys", *["nextpnr-ecp5"] * 3, "ecppack"]
    assert package.read(tmp_path / "package").bitstream is not None
    seeds = Job(Options(model=zoo.find("digits")), BOARD, tmp_path).json("seeds.json")
    assert seeds == {"seed": 3, "seeds": {"1": 70e6, "2": 79.9e6, "3": 80.5e6}}


@needs_proc
def test_a_seed_that_finds_no_place_is_left_for_the_next(
    tmp_path: Path, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_PATIENCE", 0.5)
    fakes.fmax(seed1=0, seed2=80.5, seed5=0, seed6=0)
    build(tmp_path)
    seeds = Job(Options(model=zoo.find("digits")), BOARD, tmp_path).json("seeds.json")
    assert seeds == {"seed": 2, "seeds": {"2": 80.5e6}}
    with pytest.raises(FlowError) as error:
        build(tmp_path, seed=5, tries=2)
    assert str(error.value) == (
        "nextpnr-ecp5 finds no place for all cells, or no way for all wires, with the seeds 5, 6: "
        "try another --seed or fewer --lanes"
    )


def test_a_seed_whose_router_makes_no_end_is_left_for_the_next(
    tmp_path: Path, fakes: Fakes
) -> None:
    fakes.fmax(seed1=-1, seed2=80.5)
    build(tmp_path)
    seeds = Job(Options(model=zoo.find("digits")), BOARD, tmp_path).json("seeds.json")
    assert seeds == {"seed": 2, "seeds": {"2": 80.5e6}}


def test_a_seed_that_will_miss_the_clock_by_much_is_not_routed(
    tmp_path: Path, fakes: Fakes
) -> None:
    """Routing takes most of the time. The last seed is routed, for its critical path."""
    fakes.fmax(seed1=0, seed2=79.0, seed3=80.5, seed5=0, seed6=61.0)
    fakes.estimate(seed1=75.9, seed2=76.1, seed5=60.0, seed6=60.0)
    build(tmp_path)
    seeds = Job(Options(model=zoo.find("digits")), BOARD, tmp_path).json("seeds.json")
    assert seeds == {"seed": 3, "seeds": {"1": 75.9e6, "2": 79e6, "3": 80.5e6}}
    with pytest.raises(FlowError) as error:
        build(tmp_path, seed=5, tries=2)
    lines = str(error.value).splitlines()
    assert lines[0] == (
        "the clock of 80 MHz is missed with the seeds 5, 6; the best reaches 61.0 MHz: try --freq "
        "61 or fewer --lanes"
    )
    assert lines[1:2] == ["its critical path:"]


def test_a_core_that_was_built_begins_with_the_seed_that_met_its_clock(
    tmp_path: Path, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.fmax(seed1=70.0, seed2=80.1, seed6=70.0, seed7=80.5)
    known, asked = [""], []

    def met(config: CoreConfig, board: Board) -> Met:
        asked.append((config, board))
        return Met(80e6, 6, known[0])

    monkeypatch.setattr(resources, "met", met)
    build(tmp_path)
    job = Job(Options(model=zoo.find("digits")), BOARD, tmp_path)
    assert set(asked) == {(job.config, BOARD)}
    assert list(job.json("seeds.json")["seeds"]) == ["1", "2"]  # it was not this netlist
    known[0] = logs.netlist_digest(tmp_path / "netlist.json")
    assert build(tmp_path) == ["place", "pack", "bits", "package", "report"]
    assert job.json("seeds.json") == {"seed": 7, "seeds": {"6": 70e6, "7": 80.5e6}}
    assert build(tmp_path) == []
    del asked[:]
    build(tmp_path, seed=2)
    assert list(job.json("seeds.json")["seeds"]) == ["2"]
    assert asked == []


def test_a_clock_that_no_seed_meets_fails_with_the_critical_path(
    tmp_path: Path, fakes: Fakes
) -> None:
    fakes.fmax(seed1=70.0, seed2=76.5)
    with pytest.raises(FlowError) as error:
        build(tmp_path, tries=2)
    assert str(error.value).splitlines() == [
        "the clock of 80 MHz is missed with the seeds 1, 2; the best reaches 76.5 MHz: "
        "try --freq 76 or fewer --lanes",
        "its critical path:",
        "  13.1 ns from posedge clk to posedge clk",
        "   13.07 ns  logic     a_reg.Q",
    ]
    assert not (tmp_path / "package").exists()
    assert not (tmp_path / "placed.config").exists()


def test_a_tool_that_fails_shows_its_last_lines_and_a_repeat_goes_on(
    tmp_path: Path, fakes: Fakes
) -> None:
    fakes.fail("nextpnr-ecp5", "ERROR: Unable to place cell 'x'")
    with pytest.raises(ToolError) as error:
        build(tmp_path)
    log = tmp_path / "logs" / "place-seed1.log"
    assert str(error.value) == (
        f"nextpnr-ecp5 failed (exit code 1); its log is {log}\n  ERROR: Unable to place cell 'x'"
    )
    assert log.read_text("utf-8").startswith("$ nextpnr-ecp5 --45k ")
    fakes.mend()
    assert build(tmp_path) == ["place", "pack", "bits", "package", "report"]


def test_a_core_that_finds_no_room_is_told_what_to_change(tmp_path: Path, fakes: Fakes) -> None:
    raw = "ERROR: Failed to expand region (0, 0) |_> (72, 71) of 50112 TRELLIS_COMBs"
    fakes.fail("nextpnr-ecp5", raw)
    with pytest.raises(ToolError) as error:
        build(tmp_path)
    assert str(error.value) == (
        "nextpnr-ecp5 found no room on the chip for all cells of the core: try fewer --lanes, "
        "a smaller network or another --board; its log is "
        f"{tmp_path / 'logs' / 'place-seed1.log'}\n  {raw}"
    )


def test_a_full_disk_is_told_apart_from_a_bad_design(tmp_path: Path, fakes: Fakes) -> None:
    fakes.fail("ecppack", f"ERROR: write: {os.strerror(errno.ENOSPC)}")
    with pytest.raises(OSError, match="No space left") as error:
        build(tmp_path)
    assert error.value.errno == errno.ENOSPC
    assert not (tmp_path / "top.bit").exists()


def test_a_step_that_is_interrupted_leaves_nothing_half_done(tmp_path: Path, fakes: Fakes) -> None:
    build(tmp_path)
    before = (tmp_path / "package" / "package.json").read_bytes()

    def stop(_job: Job, work: Path) -> str:
        (work / "package").mkdir()
        (work / "package" / "package.json").write_text("half", encoding="utf-8")
        raise KeyboardInterrupt

    changed = [replace(step, run=stop) if step.name == "package" else step for step in STEPS]
    job = Job(
        Options(model=zoo.find("digits"), lanes=8, freq=80.0, images=1, seed=2), BOARD, tmp_path
    )
    with pytest.raises(KeyboardInterrupt):
        flow.run(job, changed, Record(), first="load", last="report", fresh=False)
    assert (tmp_path / "package" / "package.json").read_bytes() == before
    assert not list(tmp_path.glob(".package-*"))
    assert fakes.calls()


def run_with(folder: Path, **runs: Callable[[Job, Path], str]) -> Job:
    """Run the flow, some of whose steps do this."""
    options = Options(model=zoo.find("digits"), lanes=8, freq=80.0, images=1)
    job = Job(options, BOARD, folder)
    flow.run(job, [replace(step, run=runs.get(step.name, step.run)) for step in STEPS])
    return job


def sleep_long(job: Job, work: Path) -> str:
    """Stands in for a tool that takes an hour."""
    found = Found(tool=known()["yosys"], path=sys.executable, version="")
    script = "import time; time.sleep(3600)"
    call(found, ["-c", script], folder=work, log=work / "log", stopped=job.stopped)
    return "slept"


def test_checks_run_beside_the_tools_and_are_told_in_the_order_of_the_flow(
    tmp_path: Path, fakes: Fakes
) -> None:
    placing = Event()

    def wait(job: Job, work: Path) -> str:
        assert placing.wait(600)
        return skip(job, work)

    def synth(job: Job, work: Path) -> str:
        placing.set()
        return steps.synth(job, work)

    job = run_with(tmp_path, simulate=wait, synth=synth)
    assert [outcome.step for outcome in job.outcomes] == flow.names()
    assert fakes.calls() == ["yosys", "nextpnr-ecp5", "ecppack"]
    assert build(tmp_path) == []


def test_a_check_that_fails_ends_the_tool_beside_it(tmp_path: Path, fakes: Fakes) -> None:
    def differ(_job: Job, _work: Path) -> str:
        raise FlowError("the RTL differs")

    with pytest.raises(FlowError, match=r"^the RTL differs$"):
        run_with(tmp_path, simulate=differ, synth=sleep_long)
    assert not list(tmp_path.glob(".*-*"))
    assert fakes.calls() == []
    assert build(tmp_path)[0] == "simulate"


def test_a_tool_that_fails_ends_the_check_beside_it(tmp_path: Path, fakes: Fakes) -> None:
    fakes.fail("yosys", "ERROR: no such module")
    with pytest.raises(ToolError, match="no such module"):
        run_with(tmp_path, simulate=sleep_long)
    fakes.mend()
    assert sorted(build(tmp_path)) == sorted(
        ["simulate", "synth", "place", "pack", "bits", "package", "report"]
    )


def test_an_interrupt_ends_the_tool_that_runs(tmp_path: Path) -> None:
    found = Found(tool=known()["yosys"], path=sys.executable, version="")
    script = "import os, time; print(os.getpid(), flush=True); time.sleep(3600)"

    def interrupt(_signal: int, _frame: object) -> None:
        if (tmp_path / "log").read_text("utf-8").count("\n") == 2:  # the tool has told its number
            raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            call(found, ["-c", script], folder=tmp_path, log=tmp_path / "log")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    pid = int((tmp_path / "log").read_text("utf-8").splitlines()[1])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lanes": 3}, "lanes must be at least 4, not 3"),
        ({"lanes": 12}, "lanes must be a power of two up to 256, not 12"),
        ({"weight_bits": 1}, "weight_bits must be at least 2, not 1"),
        ({"freq": 0.0}, "freq must be above 0 MHz, not 0.0"),
        ({"tries": 0}, "tries must be at least 1, not 0"),
        ({"images": 0}, "images must be at least 1, not 0"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Options(model=zoo.find("digits"), **options)


def test_zeros_of_large_memories_are_left_out_and_others_kept() -> None:
    def memory(words: list[int], form: str = "8'h{:02x}") -> str:
        lines = [f"    mem[{i}] = {form.format(word)};\n" for i, word in enumerate(words)]
        return f"module m;\n  initial begin\n{''.join(lines)}  end\nendmodule\n"

    small, large, filled = memory([0] * 3), memory([0] * 4), memory([0, 0, 0, 0, 1])
    bare = "module m;\nendmodule\n"
    assert without_zeros(small + large + filled, least=4) == small + bare + filled
    assert without_zeros(small + large + filled) == bare + bare + filled
    # Yosys writes words of 32 bits in decimal.
    assert without_zeros(memory([0] * 4, "32'd{}") + memory([10], "32'd{}")) == bare + memory(
        [10], "32'd{}"
    )


def test_contents_of_large_memories_are_cut_into_short_blocks() -> None:
    def block(words: range) -> str:
        lines = "".join(f"    mem[{i}] = 8'h{i & 255:02x};\n" for i in words)
        return f"  initial begin\n{lines}  end\n"

    assert in_blocks(block(range(1024))) == block(range(1024))
    cut = [*(block(range(i, i + 256)) for i in range(0, 1024, 256)), block(range(1024, 1025))]
    assert in_blocks(f"a\n{block(range(1025))}b\n") == f"a\n{''.join(cut)}b\n"
