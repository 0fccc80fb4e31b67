"""Block diagrams of the core: its blocks, their wires, and their positions in the drawing.

``python -m lbq_hw.diagram docs`` draws `docs/architecture.svg` and `docs/external-memory.svg` and
lists the blocks in the pages of these names. The data are in the two ``.toml`` files; a test
compares them with the core itself, so a missing block or a wire that does not exist is an error.
"""
