"""All that depends on an FPGA family or its tools: primitives, register copies, hints, states."""
