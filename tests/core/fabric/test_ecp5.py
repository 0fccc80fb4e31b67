# amaranth: UnusedElaboratable=no
"""Data pins of an ECP5, in Icarus with plain models of its cells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from amaranth.back import verilog
from amaranth.hdl import IOPort
from amaranth.lib import io

from lbq_hw.core.fabric.ecp5 import EcpDataPins

CELLS = """
module FD1S3AY(input CK, D, output reg Q); initial Q = 1; always @(posedge CK) Q <= D; endmodule
module OFS1P3BX(input SCLK, SP, PD, D, output reg Q);
  initial Q = 1; always @(posedge SCLK) Q <= D;
endmodule
module ODDRX1F(input SCLK, RST, D0, D1, output Q);
  reg [1:0] first, second, last;
  always @(posedge SCLK) begin first <= {D1, D0}; second <= first; last <= second; end
  assign Q = SCLK ? last[0] : last[1];
endmodule
module IDDRX1F(input SCLK, RST, D, output Q0, Q1); assign Q0 = D; assign Q1 = D; endmodule
module BB(input T, I, output O, inout B); assign B = T ? 1'bz : I; assign O = B; endmodule
"""
BENCH = """
module bench;
  reg clk = 0, oe = 0;
  wire [1:0] pads;
  pins dut(.clk(clk), .rst(1'b0), .oe(oe), .o(4'b1001), .pads(pads));
  integer cycle;
  initial begin
    #1 $display("%b", pads);
    for (cycle = 0; cycle < 8; cycle = cycle + 1) begin
      oe = cycle >= 2 && cycle < 5;
      #1 clk = 1;
      #1 $write("%b ", pads);
      clk = 0;
      #1 $display("%b", pads);
    end
  end
endmodule
"""
FREE = ["zz zz"]


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus is missing")
def test_pads_are_released_from_the_start_and_driven_two_cycles_after_enable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Enabled for the edges 2 to 4: first half o[0] = 01, second half o[1] = 10."""
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    pads = IOPort(2, name="pads")
    block = EcpDataPins(io.SingleEndedPort(pads))
    ports = [block.i.as_value(), block.o.as_value(), block.oe, pads]
    text = verilog.convert(block, name="pins", ports=ports)
    (tmp_path / "bench.v").write_text(CELLS + BENCH + text, "utf-8")
    compiled = tmp_path / "bench.vvp"
    subprocess.run(["iverilog", "-o", compiled, "-s", "bench", tmp_path / "bench.v"], check=True)
    done = subprocess.run(["vvp", "-n", compiled], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["zz", *FREE * 4, *["01 10"] * 3, *FREE]
