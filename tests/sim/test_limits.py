"""Simulations under cocotb that do not end are ended, and say so."""

from __future__ import annotations

import os
import signal
import textwrap
from pathlib import Path

import numpy as np
import pytest

from lbq_hw import file
from lbq_hw.sim import icarus, regression
from lbq_hw.sim.command import main
from lbq_hw.sim.drawn.networks import random_images, random_network
from lbq_hw.sim.runner import compile_design, missing, simulate
from lbq_hw.sim.verilog import SimulatorError

pytestmark = pytest.mark.skipif(
    missing("icarus") is not None, reason=missing("icarus") or "icarus runs"
)
DEAF = """
module accelerator(input clk, rst, port__valid, port__write, input [31:0] port__addr, port__w_data,
                   output port__ready, port__r_valid, busy, output [31:0] port__r_data);
  assign {port__ready, port__r_valid, port__r_data, busy} = 1;
endmodule
"""
"""A core that is busy and takes no request."""


def test_a_bench_without_an_end_is_killed_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = f"""
    import os
    import pathlib

    import cocotb

    @cocotb.test()
    async def endless(dut):
        pathlib.Path({str(tmp_path)!r}, "process").write_text(str(os.getpid()))
        while True:
            pass
    """
    (tmp_path / "endless.py").write_text(textwrap.dedent(bench))
    monkeypatch.syspath_prepend(tmp_path)
    design = compile_design("module top; endmodule", top="top", cache=tmp_path)
    with pytest.raises(SimulatorError, match=r"^icarus did not finish endless within 4 s$"):
        simulate(design, "endless", limit=4)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "process").read_text()), 0)


def test_a_core_that_does_not_answer_is_ended_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(icarus, "rtl", lambda _: DEAF)
    network = random_network(3, layers=1, timesteps=1)
    file.save(network, tmp_path / "net.lbq")
    most = ((network.input.capacity + 1) << network.input.shift) - 1
    images = np.minimum(random_images(network, 1), most)  # none saturates
    np.save(tmp_path / "images.npy", images)
    arguments = ["--model", str(tmp_path / "net.lbq"), "--raw", str(tmp_path / "images.npy")]
    assert main([*arguments, "--simulator", "icarus", "--limit", "3"]) == 2
    told = "error: icarus did not finish lbq_hw.sim.benches.server within 3 s\n"
    assert capsys.readouterr().err == told


def test_commands_for_a_core_that_was_ended_are_dropped(tmp_path: Path) -> None:
    design = compile_design(DEAF, top="accelerator", cache=tmp_path)

    def go_on() -> None:
        with icarus.Simulated(design, limit=3) as core:
            try:
                core.read(0, 1)
            finally:
                core.write(0, [0])

    with pytest.raises(
        SimulatorError, match=r"^icarus did not finish lbq_hw\.sim\.benches\.server within 3 s$"
    ):
        go_on()


def test_a_core_that_does_not_answer_is_ended_by_an_error_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = compile_design(DEAF, top="accelerator", cache=tmp_path)
    ended = []
    real = os.kill

    def kill(process: int, number: int) -> None:
        ended.append(number)
        real(process, number)

    def give_up() -> None:
        with icarus.Simulated(design, limit=120) as core:
            core.write(0, [0])
            raise RuntimeError("given up")

    monkeypatch.setattr(icarus.os, "kill", kill)
    with pytest.raises(RuntimeError, match=r"^given up$"):
        give_up()
    assert ended == [signal.SIGKILL]  # by the host; at its limit the core ends itself


@pytest.mark.parametrize(
    ("limit", "said", "told"),
    [
        (
            "0.01",
            ["lanes, not run: icarus did not finish lbq_hw.sim.benches.lanes within 0.01 s"],
            "",
        ),
        ("0", [], "error: limit must be a positive number of seconds, not 0.0\n"),
    ],
)
def test_a_regression_beyond_its_limit_is_an_error(
    limit: str, said: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regression.main(["lanes", "--simulator", "icarus", "--limit", limit]) == 2
    seen = capsys.readouterr()
    assert (seen.out.splitlines()[-1:], seen.err) == (said, told)
