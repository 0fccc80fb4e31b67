"""Shipped training configurations, one TOML file each."""
