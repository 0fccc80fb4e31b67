"""Random networks on random cores, in Verilator, against golden and the cycle model."""
