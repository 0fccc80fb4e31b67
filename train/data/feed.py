"""Batches of any loader, in the form that a network takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DistributedSampler

from lbq_hw.train.data.input_spec import InputSpec


class LoaderError(ValueError):
    """A loader whose batches a network cannot take; the message is one sentence for the user."""


class Feed:
    """The batches ``(x, targets)`` of a loader, on the device, as inputs of the first layer.

    x of an integer dtype is raw and goes through ``spec.normalize``; floats are not changed. Images
    are ``(B, C, H, W)``; recordings are ``(B, T, C, H, W)``, or ``(T, B, C, H, W)`` if the loader
    has an attribute ``time_first`` that is true. Targets are labels, or rows of class weights.
    A loader that shares its images between processes without a `DistributedSampler` has an
    attribute ``world``, the number of these processes.

    ``role`` is the loader's name in errors.
    """

    def __init__(self, loader: Any, spec: InputSpec, device: torch.device, *, role: str) -> None:
        self.loader, self._spec, self._device, self._role = loader, spec, device, role
        self._looked = False
        try:
            self._steps = len(loader)
        except TypeError:
            raise LoaderError(
                f"{role} must have a length, the batches of an epoch: give its dataset a __len__"
            ) from None
        if not self._steps:
            raise LoaderError(f"{role} must have batches, and its length is 0")

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for batch in self.loader:
            if not isinstance(batch, tuple | list) or len(batch) != 2:
                raise LoaderError(f"{self._role} must yield pairs of images and targets")
            yield self._moved(*batch)

    def begin(self, epoch: int, seed: int) -> None:
        """Seed everything that is random in an epoch; epochs are counted from 1."""
        torch.manual_seed(seed)
        generator = getattr(self.loader, "generator", None)
        if isinstance(generator, torch.Generator):
            generator.manual_seed(seed)
        for part in (self.loader, *(getattr(self.loader, n, None) for n in _SAMPLERS)):
            set_epoch = getattr(part, "set_epoch", None)
            if set_epoch is not None:
                set_epoch(epoch)

    def check_shared(self, processes: int) -> None:
        """Refuse a loader that would give every one of several processes the same images."""
        samplers = [getattr(self.loader, name, None) for name in _SAMPLERS]
        if processes > 1 and not (
            getattr(self.loader, "world", None) == processes
            or any(isinstance(sampler, DistributedSampler) for sampler in samplers)
        ):
            raise LoaderError(
                f"{self._role} must give each of the {processes} processes its share of the "
                "images: make it with a torch.utils.data.DistributedSampler or, if it shares them "
                f"itself, give it an attribute world = {processes}"
            )

    def _moved(self, x: Any, targets: Any) -> tuple[Tensor, Tensor]:
        x, targets = torch.as_tensor(x), torch.as_tensor(targets)
        self._check(x, targets)
        x = x.to(self._device, non_blocking=True)
        targets = targets.to(self._device, non_blocking=True)
        if not self._spec.static and not getattr(self.loader, "time_first", False):
            x = x.transpose(0, 1).contiguous()
        if x.is_floating_point():
            return x.float(), targets
        if x.dtype is not torch.uint8:
            x = x.clamp(0, 255).to(torch.uint8)
        return self._spec.normalize(x), targets

    def _check(self, x: Tensor, targets: Tensor) -> None:
        spec, first = self._spec, getattr(self.loader, "time_first", False)
        axes = ("B",) if spec.static else ("T", "B") if first else ("B", "T")
        if x.dim() != len(axes) + 3 or tuple(x.shape[-3:]) != spec.shape:
            want = f"({', '.join((*axes, *map(str, spec.shape)))})"
            raise LoaderError(
                f"{self._role} must yield images of shape {want}, as the InputSpec says, not "
                f"{tuple(x.shape)}"
            )
        if x.shape[axes.index("B")] != len(targets):
            raise LoaderError(
                f"{self._role} must yield a target per image, and {x.shape[axes.index('B')]} "
                f"images have {len(targets)}"
            )
        if not self._looked:
            self._looked = True  # only the first batch: reading values waits for the device
            (self._check_floats if x.is_floating_point() else self._check_raw)(x)

    def _check_raw(self, x: Tensor) -> None:
        low, high = int(x.min()), int(x.max())
        if low < 0 or high > 255:
            raise LoaderError(
                f"{self._role} must yield raw values of 0 to 255, not {low} to {high}: scale them, "
                "or give floats that are normalized already"
            )

    def _check_floats(self, x: Tensor) -> None:
        """Refuse floats that were not normalized as the spec says: the hardware gets raw pixels,
        so the network would be trained for other inputs than it will see.
        """
        x = x.detach().float().cpu()
        least, most = self._spec.limits()
        slack = (most - least) / 2**self._spec.bits  # half a step: pixels may be interpolated
        found = f"{self._role} yields floats from {float(x.min()):.4g} to {float(x.max()):.4g}"
        if not bool(((x >= least - slack) & (x <= most + slack)).all()):
            raise LoaderError(
                f"{found}, but the InputSpec makes {float(least.min()):.4g} to "
                f"{float(most.max()):.4g} of raw pixels: yield raw integers, or normalize with "
                "the mean and std of the InputSpec"
            )
        if bool((least < 0).all()) and x.min() >= 0:
            raise LoaderError(
                f"{found}, none below 0, but the InputSpec subtracts a mean: yield raw integers, "
                "or normalize with its mean and std"
            )


_SAMPLERS = ("sampler", "batch_sampler")
