"""The core for a design of one's own: Verilog, register map, C driver, FuseSoC file, example."""
