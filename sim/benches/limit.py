"""Not a testbench: loaded before one, it ends the simulator with a signal when its time is up.

The kernel sends the signal, so it also ends a simulator that hangs, or whose parent process is
gone.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "LBQ_LIMIT"
"""Seconds of wall-clock time; without it there is no limit."""

if VARIABLE in os.environ:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, float(os.environ[VARIABLE]))
