"""First light, step by step: what is looked at, what it means, and what to do about it.

`machine` is all that touches the computer, so that a test can be one; `steps` are the steps, in the
order in which a board comes to life; `walk` goes through them; ``python -m lbq_hw.bring_up`` shows
what it finds and writes it to a file for a bug report.
"""

from lbq_hw.bring_up.walk import Finding, State, Visit, walk

__all__ = ["Finding", "State", "Visit", "walk"]
