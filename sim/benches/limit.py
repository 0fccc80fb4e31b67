"""No testbench of its own: loaded before one, ends the simulator by a signal when its time is up.

The signal comes from the kernel, so that nothing that hangs can miss it, and comes as well where
the process that started the simulator is gone.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "LBQ_LIMIT"
"""Seconds of wall clock; without it nothing is done."""

if VARIABLE in os.environ:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, float(os.environ[VARIABLE]))
