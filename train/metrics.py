"""``metrics.jsonl`` of a run folder: one JSON object per epoch.

======================  ===========================================================================
epoch                   counted from 1
loss, train_accuracy    means over the epoch's augmented images, while the weights changed
activity                with ``train.activity``, over the same images: the mean level over all
                        accumulations (see :mod:`train.activity`)
test_accuracy           percent of the test images, null if the epoch was not tested; of the
                        averaged weights with ``train.ema``; in float32 after the last epoch
validation_accuracy     instead of test_accuracy with ``data.validation``: percent of the images
                        that are held out
last_weights_accuracy   last epoch, with ``train.ema``: accuracy of the weights without averaging
lr                      learning rate of the epoch's last step
seconds, total_seconds  of the epoch, and of the run so far, with all its resumed pieces
gamma_min, gamma_max    steps of the neurons, in the weights that are tested
lambda_min, lambda_max  tail strengths of the neurons that have one
======================  ===========================================================================
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import nn

from lbq_hw.train.neurons import Neuron


class Metrics:
    """The file at ``path``. Lines after epoch ``done`` are dropped: they come from a run that was
    stopped before its next checkpoint. ``last`` is the line of epoch ``done``, or empty.
    """

    def __init__(self, path: Path, done: int) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if done and path.is_file() else ""
        lines = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
        kept = [line for line in lines if line["epoch"] <= done]
        path.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        self.last: dict[str, Any] = kept[-1] if kept and kept[-1]["epoch"] == done else {}

    def write(self, line: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def ranges(model: nn.Module) -> dict[str, float]:
    """The smallest and the largest step and tail strength of the network's neurons."""
    neurons = [module for module in model.modules() if isinstance(module, Neuron)]
    learned = {"gamma": [n.gamma for n in neurons], "lambda": [n.lam for n in neurons]}
    found: dict[str, float] = {}
    for name, tensors in learned.items():
        values = [tensor.item() for tensor in tensors if tensor is not None]
        if values:
            found |= {f"{name}_min": min(values), f"{name}_max": max(values)}
    return found
