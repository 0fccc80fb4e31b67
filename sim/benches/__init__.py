"""Testbenches under cocotb, one file per block; `sim.regression` runs them.

A testbench has `SHAPES`, the sizes that it is built for, `block(shape)`, the design under test,
and cocotb's tests. `BENCHES` names them in the order of the data.
"""

BENCHES = (
    "uart",
    "link",
    "memory",
    "tape_reader",
    "host_port",
    "walker",
    "planes",
    "scanner",
    "lanes",
    "neurons",
    "writer",
    "accelerator",
)
