"""Print the table of docs/external-memory.md: ``python -m lbq_hw.chips``."""

from lbq_hw.chips.captures import markdown

print(markdown(), end="")
