"""The core in simulators, against the golden model."""
