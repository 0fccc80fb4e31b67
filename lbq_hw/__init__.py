"""Learned burst quantization, deployed: integer network, golden model, compiler, core."""
