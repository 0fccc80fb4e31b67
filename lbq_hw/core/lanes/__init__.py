"""The lanes: one event per cycle, one accumulation in every lane."""
