"""The network of a run with its optimizer, and the training step."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.nn.parallel import DistributedDataParallel

from lbq_hw.train.activity import find_shares, with_activity
from lbq_hw.train.data import InputSpec, LoaderError
from lbq_hw.train.graph import GraphError, several_outputs
from lbq_hw.train.kernels.fuse import fuse
from lbq_hw.train.optim import build_optimizer, follower
from lbq_hw.train.run_folder import RunError
from lbq_hw.train.sam import uphill
from lbq_hw.train.settings.recipe import Recipe
from lbq_hw.train.world import World

_IGNORED = -100  # the label that torch's cross entropy leaves out


class Learner:
    """A network in the form that is trained, with its own weights or those of ``state``.

    Members: `model`; `plain`, the same modules in the graph before norms and neurons were fused;
    `average`, its averaged weights, None without ``train.ema``; `optimizer`; `autocast`, the
    context of half precision, which does nothing unless ``train.amp`` asks for it.
    """

    def __init__(
        self,
        model: nn.Module,
        spec: InputSpec,
        recipe: Recipe,
        world: World,
        state: Mapping[str, Any] | None,
    ) -> None:
        device = world.device
        self._recipe, self._spec, self._device = recipe, spec, device
        self._looked = False
        self.model = self.plain = model.to(device)
        self.average = copy.deepcopy(model) if recipe.ema else None
        shares = {}
        if isinstance(model, fx.GraphModule):
            self.plain = fx.GraphModule(model, copy.deepcopy(model.graph))
            parts = recipe.activity_layers
            shares = find_shares(model, spec, parts) if recipe.activity else {}
            if recipe.fuse:
                fuse(model)
        elif recipe.activity or recipe.fuse:
            raise RunError("train.activity and train.fuse need a model with burst neurons")
        if recipe.channels_last:
            self.model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.optimizer = build_optimizer(self.model, recipe)
        if state is not None:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(state["ema"] if state else self.model.state_dict())
        self._follow = follower(self.average, self.model, recipe.ema)
        # The model that a step calls: the plain model, or one that shares gradients of processes.
        self._runner: nn.Module = self.model
        if recipe.activity:
            assert isinstance(self.model, fx.GraphModule)
            self._runner = with_activity(self.model, shares)
        if world.size > 1:
            self._runner = DistributedDataParallel(self._runner)
        if recipe.compile != "off":
            self._runner.compile(mode=recipe.compile)
        torch.backends.cudnn.benchmark = True
        self.autocast = torch.autocast(device.type, torch.bfloat16, enabled=recipe.amp == "bf16")

    @property
    def tested(self) -> nn.Module:
        """The model with the weights that are tested: averaged, if there is an average."""
        return self.average or self.model

    @property
    def result(self) -> nn.Module:
        """The same weights in a network that can be exported: nothing in it is fused."""
        return self.average or self.plain

    def state_dict(self) -> dict[str, Any]:
        """The ``state`` with which a new :class:`Learner` continues from here."""
        return {
            "model": self.model.state_dict(),
            "ema": None if self.average is None else self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def step(self, x: Tensor, y: Tensor, *, rate: float, sharp: bool, cost: float = 0.0) -> Tensor:
        """One step of the optimizer at a learning rate, sharpness-aware with ``sharp``; ``cost`` is
        the weight of the activity in the minimized loss.

        Returns loss, hits (in percent) and activity of the first pass, summed over images. This
        loss is without the activity, and the activity is 0 if ``train.activity`` is 0. All three
        stay on the device, since reading them would wait for it.
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
        parts = list(zip(x_parts, y.chunk(recipe.accumulate), strict=True))
        for index, (images, targets) in enumerate(parts, 1):
            if recipe.channels_last and static:
                images = images.contiguous(memory_format=torch.channels_last)
            with _synced(self._runner, last=index == len(parts)):
                with self.autocast:
                    found = self._runner(images)
                if recipe.activity:
                    logits, activity = found
                else:
                    logits = _one_tensor(found)
                    activity = logits.new_zeros(())
                logits = logits.float()
                self._check_labels(targets, logits.shape[1])
                loss = F.cross_entropy(logits, targets, label_smoothing=recipe.label_smoothing)
                ((loss + cost * activity) / len(parts)).backward()
            labels = targets if targets.ndim == 1 else targets.argmax(1)
            hits = (logits.argmax(1) == labels).sum()
            count = len(labels)
            seen += torch.stack((loss.detach() * count, 100 * hits, activity.detach() * count))
        return seen

    def _check_labels(self, targets: Tensor, outputs: int) -> None:
        """Refuse labels beyond the outputs; on a GPU only of the first batch, since reading a value
        waits for the device.
        """
        if targets.ndim != 1 or (self._looked and targets.device.type != "cpu"):
            return
        self._looked = True
        wrong = targets[((targets < 0) & (targets != _IGNORED)) | (targets >= outputs)]
        if len(wrong):
            raise LoaderError(
                f"train_loader yields the label {int(wrong[0])}, but the model has {outputs} "
                "outputs"
            )


def _one_tensor(found: Any) -> Tensor:
    """What a model returned; GraphError if it is not one tensor, as of an nn.LSTM."""
    if isinstance(found, Tensor):
        return found
    raise GraphError([several_outputs(found)])


def _synced(runner: nn.Module, *, last: bool) -> contextlib.AbstractContextManager[Any]:
    """Gradients are exchanged between processes only after the last micro-batch."""
    if isinstance(runner, DistributedDataParallel) and not last:
        return runner.no_sync()
    return contextlib.nullcontext()
