"""The core as drawings: which blocks there are, how they are wired, where they are drawn.

``python -m lbq_hw.diagram docs`` draws `docs/architecture.svg` and `docs/external-memory.svg` and
lists the blocks in the pages of these names. The data are in the two ``.toml`` files; a test
compares them with the core itself, so a block that is missing and a wire that does not exist are
errors.
"""
