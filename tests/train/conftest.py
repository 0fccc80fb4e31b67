"""What torch draws is the same in every run, so that a test that fails fails again."""

import pytest
import torch

torch.manual_seed(0)  # for weights that are drawn while tests are collected


@pytest.fixture(autouse=True)
def repeatable() -> None:
    torch.manual_seed(0)
