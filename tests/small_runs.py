"""Runs of seconds on the embedded digits, and what they leave in their folders."""

import contextlib
import itertools
import json
from pathlib import Path

import torch

from lbq_hw.train import fitting
from lbq_hw.train.optim import learning_rate
from lbq_hw.train.settings import config
from lbq_hw.train.settings.config import Config

SMALL = (
    "train.epochs=3",
    "train.batch=240",
    "train.device=cpu",
    "model.channels=[4, 4]",
    "neuron.timesteps=1",
)


def small(*changes: str, name: str = "digits") -> Config:
    return config.load(name, [*SMALL, *changes])


def tensors(value, path=""):
    """Every tensor of a checkpoint by its path."""
    if isinstance(value, torch.Tensor):
        return {path: value}
    if isinstance(value, dict):
        return {k: v for key in value for k, v in tensors(value[key], f"{path}/{key}").items()}
    return {}


def lines(folder: Path) -> list[dict]:
    text = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def metrics(folder: Path) -> list[dict]:
    """The lines without what a clock says."""
    clock = ("seconds", "total_seconds")
    return [{k: v for k, v in line.items() if k not in clock} for line in lines(folder)]


@contextlib.contextmanager
def interrupted_at(step: int, monkeypatch):
    """As if a user interrupted the run within that step, counted from 1."""
    calls = itertools.count(1)

    def rate(*values):
        if next(calls) == step:
            raise KeyboardInterrupt
        return learning_rate(*values)

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "learning_rate", rate)
        yield
