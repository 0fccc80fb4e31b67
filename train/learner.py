"""The network of a run with its optimizer, and the step that moves its weights."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.nn.parallel import DistributedDataParallel

from lbq_hw.train import checkpoint, start
from lbq_hw.train.activity import find_shares, with_activity
from lbq_hw.train.config import Config
from lbq_hw.train.data import DeviceLoader, InputSpec
from lbq_hw.train.kernels.fuse import fuse
from lbq_hw.train.norms import settle
from lbq_hw.train.optim import build_optimizer, follower
from lbq_hw.train.run_folder import RunError
from lbq_hw.train.sam import uphill
from lbq_hw.train.world import World

SETTLING_BATCHES = 16  # to measure what reaches each norm


class Learner:
    """A network in the form that is deployed, with random weights, those of ``train.init``, or
    those of the checkpoint ``state``. The norms of an integer network are measured on the first
    batches of ``loader``.

    Members: `model`; `average`, its averaged weights, None without ``train.ema``; `optimizer`;
    `autocast`, the context of half precision, which does nothing unless ``train.amp`` asks for it.
    """

    def __init__(
        self,
        config: Config,
        spec: InputSpec,
        classes: int,
        world: World,
        state: dict[str, Any] | None,
        loader: DeviceLoader,
    ) -> None:
        recipe, device = config.train, world.device
        self._recipe, self._spec, self._device = recipe, spec, device
        torch.manual_seed(recipe.seed)
        init = recipe.init if state is None else ""
        self.model = _network(config, spec, classes, init=init).to(device)
        if start.is_network(init):
            settle(self.model, (x for x, _ in itertools.islice(loader, SETTLING_BATCHES)))
        parts = recipe.activity_layers
        shares = find_shares(self.model, spec, parts) if recipe.activity else {}
        if recipe.fuse:
            fuse(self.model)
        self.average = checkpoint.build(config, spec, classes).to(device) if recipe.ema else None
        if recipe.channels_last:
            self.model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.optimizer = build_optimizer(self.model, recipe)
        if state is not None:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(state["ema"] if state else self.model.state_dict())
        self._follow = follower(self.average, self.model, recipe.ema)
        # What a step calls: the model itself, or the model with its gradients shared.
        self._runner: nn.Module = self.model
        if recipe.activity:
            self._runner = with_activity(self.model, shares)
        if world.size > 1:
            self._runner = DistributedDataParallel(self._runner)
        if recipe.compile != "off":
            self._runner.compile(mode=recipe.compile)
        torch.backends.cudnn.benchmark = True
        self.autocast = torch.autocast(device.type, torch.bfloat16, enabled=recipe.amp == "bf16")

    @property
    def tested(self) -> fx.GraphModule:
        """The weights that are tested: the averaged ones where there are any."""
        return self.average or self.model

    def state_dict(self) -> dict[str, Any]:
        """What :class:`Learner` takes as ``state`` to go on from here."""
        return {
            "model": self.model.state_dict(),
            "ema": None if self.average is None else self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def step(self, x: Tensor, y: Tensor, *, rate: float, sharp: bool, cost: float = 0.0) -> Tensor:
        """One step of the optimizer at a learning rate, sharpness-aware where ``sharp``; ``cost``
        is the weight of the activity in what is minimized.

        Returns loss, hits (in percent) and activity of its first pass, summed over images: the loss
        without the activity, which is 0 where ``train.activity`` is. They stay on the device, since
        reading them would wait for it.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        seen = self._gradients(x, y, cost)
        if sharp:
            with uphill(self.model, self._recipe.sam):
                self._gradients(x, y, cost)
        if self._recipe.grad_clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self._recipe.grad_clip)
        self.optimizer.step()
        self._follow()
        return seen

    def _gradients(self, x: Tensor, y: Tensor, cost: float) -> Tensor:
        """One pass over a batch, in ``train.accumulate`` parts; what :meth:`step` returns."""
        recipe, static = self._recipe, self._spec.static
        seen = torch.zeros(3, dtype=torch.float64, device=self._device)
        self.optimizer.zero_grad()
        x_parts = x.chunk(recipe.accumulate, 0 if static else 1)
        parts = zip(x_parts, y.chunk(recipe.accumulate), strict=True)
        for index, (images, targets) in enumerate(parts, 1):
            if recipe.channels_last and static:
                images = images.contiguous(memory_format=torch.channels_last)
            with _synced(self._runner, last=index == recipe.accumulate):
                with self.autocast:
                    found = self._runner(images)
                logits, activity = found if recipe.activity else (found, found.new_zeros(()))
                logits = logits.float()
                loss = F.cross_entropy(logits, targets, label_smoothing=recipe.label_smoothing)
                ((loss + cost * activity) / recipe.accumulate).backward()
            labels = targets if targets.ndim == 1 else targets.argmax(1)
            hits = (logits.argmax(1) == labels).sum()
            count = len(labels)
            seen += torch.stack((loss.detach() * count, 100 * hits, activity.detach() * count))
        return seen


def _network(config: Config, spec: InputSpec, classes: int, *, init: str) -> fx.GraphModule:
    """The network as it is trained, from the weights of the run ``init`` if one is named."""
    if init and config.data.validation and _has_seen(init, config):
        raise RunError(
            f"train.init = {init!r} has trained on images that data.validation holds out"
        )
    return checkpoint.build(config, spec, classes, init=init)


def _has_seen(init: str, config: Config) -> bool:
    """Whether a start has, or may have, trained on images that this one holds out."""
    if start.is_network(init):
        meta = start.load_network(init)[0].meta
        data = meta.get("config", {}).get("data", {"name": meta.get("dataset")})
    else:
        data = checkpoint.index(Path(init), "last")["config"]["data"]
    return data["name"] in (config.data.name, None) and (
        data.get("validation", 0) < config.data.validation
    )


def _synced(runner: nn.Module, *, last: bool) -> contextlib.AbstractContextManager[Any]:
    """Gradients travel between processes after the last micro-batch only."""
    if isinstance(runner, DistributedDataParallel) and not last:
        return runner.no_sync()
    return contextlib.nullcontext()
