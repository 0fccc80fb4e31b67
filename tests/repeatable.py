"""What torch draws is the same in every run, so that a test that fails fails again."""

from collections.abc import Iterator

import pytest
import torch

torch.manual_seed(0)  # for weights that are drawn while tests are collected


@pytest.fixture(autouse=True)
def repeatable() -> Iterator[None]:
    """Where a CPU has no bf16 of its own, a test of it would leave mkldnn off for all others."""
    torch.manual_seed(0)
    mkldnn = torch.backends.mkldnn.enabled
    yield
    torch.backends.mkldnn.set_flags(mkldnn)
