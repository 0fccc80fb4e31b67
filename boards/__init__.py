"""Boards that the core is built for: one file each."""
