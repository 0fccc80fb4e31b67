"""The core for your own design: Verilog, register map, C driver, FuseSoC file, example."""
