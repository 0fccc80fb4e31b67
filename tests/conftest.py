"""Settings every test shares: repeatable examples, one thread a process (xdist uses the cores)."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import settings

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # read when numpy and torch are first imported

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("ci")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Hold torch to one thread where a test has imported it; tests of lbq_hw run without it."""
    del session
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
