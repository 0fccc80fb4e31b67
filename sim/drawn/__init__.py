"""Random networks, cores and recordings, drawn from seeds, for sweeps and tests."""
