"""README.md: it is short, and its example of a network of your own runs as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import lbq_hw
from lbq_hw import boards

PAGE = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def test_it_is_read_in_a_few_minutes() -> None:
    assert len(PAGE.splitlines()) <= 120


def test_the_network_of_your_own_is_trained_saved_and_fits_the_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    torch.manual_seed(0)
    images = torch.randint(0, 256, (64, 1, 28, 28), dtype=torch.uint8)
    loader = DataLoader(TensorDataset(images, torch.arange(64) % 10), batch_size=32)
    exec(block, {"train_loader": loader, "test_loader": loader})
    network = lbq_hw.load("net.lbq")
    assert network.name == "net"
    (board,) = re.findall(r"lbq build --board (\S+) --model net\.lbq", PAGE)
    sized = lbq_hw.size(network, boards.find(board), images=images[:2].numpy())
    assert lbq_hw.compile_network(network, sized.config).name == "net"
