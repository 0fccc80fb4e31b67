"""The step that is timed, with network, optimizer and batches as in :mod:`train.loop`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from lbq_hw.datasets import Dataset
from lbq_hw.train.data import DeviceLoader, InputSpec
from lbq_hw.train.data.augment import Pipeline
from lbq_hw.train.kernels.fuse import fuse
from lbq_hw.train.optim import build_optimizer
from lbq_hw.train.settings.config import Config


class Training:
    """A network with its optimizer as in :mod:`train.loop`; a call is one step of the optimizer."""

    def __init__(
        self,
        chosen: Config,
        model: nn.Module,
        batches: Iterator[tuple[Tensor, Tensor]],
        device: torch.device,
    ) -> None:
        self.config, self.batches, self.device = chosen, batches, device
        self.model = model.to(device)
        if chosen.train.fuse and isinstance(model, fx.GraphModule):
            fuse(model)
        if chosen.train.channels_last:
            self.model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.optimizer = build_optimizer(self.model, chosen.train)
        if chosen.train.compile != "off":
            self.model.compile(mode=chosen.train.compile)
        self.model.train()

    def __call__(self) -> Tensor:
        """Do one step; the loss stays on the device, so that nothing waits for it."""
        train = self.config.train
        images, targets = next(self.batches)
        self.optimizer.zero_grad()
        if train.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=train.amp == "bf16"):
            logits = self.model(images)
        loss = F.cross_entropy(logits.float(), targets, label_smoothing=train.label_smoothing)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def random_batches(
    chosen: Config, spec: InputSpec, classes: int, images: int, device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    """An endless sequence of augmented batches of random images and labels."""
    rng = np.random.default_rng(0)
    dataset = Dataset(
        name="random",
        images=rng.integers(0, 256, (images, *spec.shape), dtype=np.uint8),
        labels=rng.integers(0, classes, images),
        classes=classes,
    )
    augment = Pipeline(chosen.augment, spec, classes=classes).to(device)
    if chosen.train.compile != "off":
        augment.compile()
    loader = DeviceLoader(
        dataset,
        spec,
        batch=chosen.train.batch,
        device=device,
        augment=augment,
        shuffle=True,
        drop_last=True,
        generator=torch.Generator(device).manual_seed(0),
    )
    return itertools.chain.from_iterable(itertools.repeat(loader))
