"""Bring-up of a board, step by step: each check, its meaning, and the remedy.

`machine` is the interface to the computer, which tests replace; `steps` lists the steps in order;
`walk` goes through them; ``python -m lbq_hw.bring_up`` shows the findings and writes them to a file
for a bug report.
"""

from lbq_hw.bring_up.walk import Finding, State, Visit, walk

__all__ = ["Finding", "State", "Visit", "walk"]
