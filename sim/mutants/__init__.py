"""Faults planted in the core, and how many of them the tests find."""
