"""Pictures of README.md and docs/ that are made from data: ``python -m tools.pictures docs``."""
