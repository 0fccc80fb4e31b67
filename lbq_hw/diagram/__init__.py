"""The core as a drawing: which blocks there are, how they are wired, where they are drawn.

``python -m lbq_hw.diagram docs`` draws `docs/architecture.svg` and lists the blocks in
`docs/architecture.md`. The data are in `drawing`; a test compares them with the core itself, so a
block that is missing and a wire that does not exist are errors.
"""
