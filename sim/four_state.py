"""Repeats a run of the board's bench in Icarus, where uninitialised values are unknown (x).

The bench has recorded all changes of the serial line (``sim/board.cpp``). Here the received line is
replayed cycle by cycle, and the sent line must be equal in every cycle. An unknown value that
reaches the sent line counts as a difference.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import tempfile
import time
from typing import Any

import numpy as np

from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path

LIMIT = 300_000
"""Cycles that are simulated at most: Icarus does some hundred of a whole core per second."""
_BENCH = """
module bench;
    reg clk = 0, rx = 1, wanted = 1, next_rx, next_tx;
    wire tx, busy;
    integer file, cycle, next, found;
    system system (.clk(clk), .rst(1'b0), .rx(rx), .tx(tx), .busy(busy));
    initial begin
        file = $fopen("record", "r");
        found = $fscanf(file, "%d %b %b\\n", next, next_rx, next_tx);
        for (cycle = 1; found == 3; cycle = cycle + 1) begin
            if (cycle == next) begin
                rx = next_rx;
                wanted = next_tx;
                found = $fscanf(file, "%d %b %b\\n", next, next_rx, next_tx);
            end
            clk = 0;
            #1 clk = 1;
            #1 if (tx !== wanted) begin
                $display("%b instead of %b in cycle %0d", tx, wanted, cycle);
                $finish;
            end
        end
        $display("equal");
        $finish;
    end
endmodule
"""


def smallest(config: CoreConfig) -> Network:
    """A network with one pixel, two neurons and two classes, for any core: no network loads faster
    over the line.
    """
    neuron = Neuron(
        capacity=1, theta=np.array([1, 2]), reset=np.array([1, 2]), decay=1, decay_bits=0
    )
    hidden = Layer(
        name="hidden",
        shape=(2, 1, 1),
        paths=(Path(source=INPUT, weight=np.array([[[[1]]], [[[-1]]]])),),
        bias=np.array([0, 2]),
        fraction_bits=0,
        neuron=neuron,
    )
    logits = Layer(
        name="logits",
        shape=(2, 1, 1),
        paths=(Path(source="hidden", weight=np.array([[[[1]], [[-1]]], [[[-1]], [[1]]]])),),
        bias=np.array([0, 1]),
        fraction_bits=0,
        neuron=None,
    )
    return Network(
        name="smallest",
        input=Input(shape=(1, 1, 1), static=True, bits=1),
        timesteps=1,
        weight_bits=config.weight_bits,
        layers=(hidden, logits),
    )


def run(verilog: str, record: pathlib.Path, *, memory: bytes = b"") -> dict[str, Any]:
    """Facts for JSON: whether the sent line was equal, the cycles and the seconds.

    `verilog` has the module ``system``; `memory` is what its SDRAM holds.
    """
    if shutil.which("iverilog") is None:
        return {"skipped": "Icarus is missing: sudo apt install iverilog"}
    cycles = int(record.read_text(encoding="utf-8").split()[-3])
    if cycles > LIMIT:
        return {"skipped": f"its {cycles:,} cycles are more than {LIMIT:,}"}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "bench.v").write_text(verilog + _BENCH, encoding="utf-8")
        (folder / "memory").write_bytes(memory)
        shutil.copyfile(record, folder / "record")
        build = ["iverilog", "-g2012", "-s", "bench", "-o", "bench", "bench.v"]
        subprocess.run(build, cwd=folder, check=True, capture_output=True)
        began = time.monotonic()
        done = subprocess.run(
            ["vvp", "-n", "bench", "+sdram_file=memory"],
            cwd=folder, check=True, capture_output=True, text=True,
        )  # fmt: skip
    said = done.stdout.splitlines()[-1]
    seconds = round(time.monotonic() - began, 1)
    return {
        "equal": said == "equal",
        "difference": None if said == "equal" else said,
        "cycles": cycles,
        "seconds": seconds,
    }
