"""How raw pixels become the input of a network, and batches that are made on the device."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lbq_hw.datasets import Dataset

if TYPE_CHECKING:
    from train.data.augment import Pipeline


@dataclass(frozen=True, kw_only=True)
class InputSpec:
    """How a raw uint8 input becomes what the first layer sees.

        q = min(raw >> shift, 2**bits - 1)      the integer that the hardware gets
        x = q / full_scale                      then (x - mean) / std, where given, per channel

    ``shape`` is (channels, height, width) of an image or of one time slice; ``static`` says that
    one image serves every timestep. ``full_scale`` is 2**bits - 1 unless given.
    """

    shape: tuple[int, int, int]
    static: bool
    bits: int
    shift: int = 0
    full_scale: float = 0.0
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "mean", tuple(self.mean))
        object.__setattr__(self, "std", tuple(self.std))
        if len(self.shape) != 3 or not all(isinstance(n, int) and n > 0 for n in self.shape):
            raise ValueError(f"shape must be three positive integers, not {self.shape!r}")
        if not isinstance(self.static, bool):
            raise TypeError(f"static must be a bool, not {self.static!r}")
        for name, low, high in (("bits", 1, 8), ("shift", 0, 7)):
            value = getattr(self, name)
            if not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be {low} to {high}, not {value!r}")
        if self.full_scale < 0:
            raise ValueError(f"full_scale must be positive, not {self.full_scale!r}")
        object.__setattr__(self, "full_scale", float(self.full_scale or 2**self.bits - 1))
        if len(self.mean) != len(self.std):
            raise ValueError(
                f"mean and std must be given together, not {self.mean!r} and {self.std!r}"
            )
        if len(self.mean) not in (0, self.shape[0]):
            raise ValueError(f"mean must have {self.shape[0]} values, not {self.mean!r}")
        if any(value <= 0 for value in self.std):
            raise ValueError(f"std must be positive, not {self.std!r}")

    def normalize(self, raw: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """What the first layer sees of a uint8 tensor (..., C, H, W)."""
        if self.shift:
            raw = raw >> self.shift
        if self.bits + self.shift < 8:
            raw = raw.clamp(max=2**self.bits - 1)
        x = raw.to(dtype) / self.full_scale
        if not self.mean:
            return x
        # Python scalars, not tensors: a constant made here would be copied to the device, in step.
        channels = zip(x.unbind(-3), self.mean, self.std, strict=True)
        return torch.stack([(channel - mean) / std for channel, mean, std in channels], -3)


def hold_out(dataset: Dataset, count: int) -> tuple[Dataset, Dataset]:
    """A training split without ``count`` images, and these images, as many of each class.

    Held out are, of each class, the images whose places in the split, as decimal ASCII digits, have
    the least SHA-256. So the choice depends on the labels alone, and a longer list of images holds
    every shorter one. Both parts keep the order of the split.
    """
    share, rest = divmod(count, dataset.classes)
    least = int(np.bincount(dataset.labels, minlength=dataset.classes).min())
    if rest or not 0 < share < least:
        raise ValueError(
            f"data.validation must be a multiple of the {dataset.classes} classes and leave images "
            f"of each, of which the smallest has {least}, not {count}"
        )
    places = sorted(range(len(dataset)), key=lambda place: hashlib.sha256(b"%d" % place).digest())
    order, held = np.array(places), np.zeros(len(dataset), dtype=bool)
    for kind in range(dataset.classes):
        held[order[dataset.labels[order] == kind][:share]] = True
    kept, out = (
        replace(dataset, images=dataset.images[chosen], labels=dataset.labels[chosen])
        for chosen in (~held, held)
    )
    return kept, out


def mean_levels(dataset: Dataset) -> tuple[int, ...]:
    """The mean of all pixels of each channel, rounded to a level, halves up."""
    images = dataset.images.reshape(-1, *dataset.images.shape[-3:])
    totals = images.sum((0, 2, 3), dtype=np.int64)
    count = images.size // len(totals)
    return tuple(int(total) for total in (2 * totals + count) // (2 * count))


class DeviceLoader:
    """Batches of a dataset that lies on the device, whole, as uint8.

    Each pass yields ``(x, targets)``: x is float32 (B, C, H, W), or (T, B, C, H, W) for recordings;
    targets are labels, or rows of class weights when ``augment`` mixes images. Nothing waits for
    the device: the order of an epoch is drawn there, batches are gathered and augmented there.

    ``batch`` counts the images of one step over all processes. With ``world`` processes each draws
    the same order and the same random numbers, and ``rank`` takes its contiguous share of every
    batch, so that two processes see together exactly what one would. Images that are mixed come in
    pairs, which a share must not divide.

    All randomness comes from ``generator``, which is on ``device``.
    """

    def __init__(
        self,
        dataset: Dataset,
        spec: InputSpec,
        *,
        batch: int,
        device: torch.device | str = "cpu",
        augment: Pipeline | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
        generator: torch.Generator | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        if dataset.shape != spec.shape or dataset.temporal == spec.static:
            kind = "static" if spec.static else "temporal"
            raise ValueError(
                f"dataset must have {kind} images of shape {spec.shape!r}, "
                f"not {dataset.name!r} of shape {dataset.images.shape[1:]!r}"
            )
        if batch < 1 or batch % world:
            raise ValueError(f"batch must be a positive multiple of {world}, not {batch!r}")
        if world > 1 and augment is not None and augment.mixes and batch % (2 * world):
            raise ValueError(f"batch must be a multiple of {2 * world} to mix pairs, not {batch!r}")
        if not 0 <= rank < world:
            raise ValueError(f"rank must be 0 to {world - 1}, not {rank!r}")
        training = shuffle or augment is not None
        if training and generator is None:
            raise ValueError("generator must be given to shuffle or augment, not None")
        if training and world > 1 and not drop_last:
            raise ValueError("drop_last must be True when several processes train, not False")
        if drop_last and batch > len(dataset):
            raise ValueError(f"batch must be at most {len(dataset)} with drop_last, not {batch!r}")
        self.images = torch.from_numpy(dataset.images).to(device)
        self.labels = torch.from_numpy(dataset.labels).to(device)
        self.spec, self.batch, self.augment = spec, batch, augment
        self.shuffle, self.drop_last, self.generator = shuffle, drop_last, generator
        self.rank, self.world = rank, world

    def __len__(self) -> int:
        """Batches of an epoch."""
        count = len(self.labels)
        return count // self.batch if self.drop_last else -(-count // self.batch)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        total, device = len(self.labels), self.labels.device
        if self.shuffle:
            order = torch.randperm(total, generator=self.generator, device=device)
        else:
            order = torch.arange(total, device=device)
        for index in range(len(self)):
            first = index * self.batch
            count = min(self.batch, total - first)
            share = slice(count * self.rank // self.world, count * (self.rank + 1) // self.world)
            if share.start < share.stop:
                yield self._batch(order[first : first + count][share], count, share)

    def _batch(self, chosen: Tensor, count: int, share: slice) -> tuple[Tensor, Tensor]:
        x, targets = self.images[chosen], self.labels[chosen]
        if self.augment is None or self.generator is None:
            x = self.spec.normalize(x)
        else:
            draws = self.augment.draw(count, self.generator)
            x, targets = self.augment(x, targets, draws[:, share])
        return (x, targets) if self.spec.static else (x.transpose(0, 1).contiguous(), targets)
