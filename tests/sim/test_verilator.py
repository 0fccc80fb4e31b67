"""The process of a simulated core."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulators import needs_verilator

from lbq_hw.sim.verilator import BENCH, TOP, Verilated, build_bench
from lbq_hw.sim.verilog import SimulatorError

pytestmark = needs_verilator

SILENT = """
module accelerator(
    input clk, input rst, input [31:0] port__addr, input port__write, input [31:0] port__w_data,
    input port__valid, output port__ready, output port__r_valid, output [31:0] port__r_data,
    output busy
);
    assign port__ready = {ready};
    assign port__r_valid = 0;
    assign port__r_data = 0;
    assign busy = 0;
endmodule
"""


@pytest.mark.parametrize(("ready", "told"), [(0, "accept a request"), (1, "answer a read")])
def test_a_port_that_never_answers_ends_the_simulation(
    tmp_path: Path, ready: int, told: str
) -> None:
    program = build_bench(SILENT.format(ready=ready), BENCH, top=TOP, cache=tmp_path)
    with (
        Verilated(program) as core,
        pytest.raises(SimulatorError, match=f"^the core's port does not {told}$"),
    ):
        core.read(0, 1)
