"""Batches of a dataset, made on the device."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lbq_hw.datasets import Dataset
from lbq_hw.train.data.augment import Pipeline
from lbq_hw.train.data.input_spec import InputSpec


class DeviceLoader:
    """Batches of a dataset; the whole dataset lies on the device as uint8.

    Each pass yields ``(x, targets)``: x is float32 (B, C, H, W), or (T, B, C, H, W) for recordings;
    targets are labels, or rows of class weights if ``augment`` mixes images. The order of an epoch
    is drawn on the device, and batches are gathered and augmented there, so the host never waits.

    ``batch`` counts the images of one step over all processes. With ``world`` processes, each draws
    the same order and the same random numbers, and ``rank`` takes its contiguous share of every
    batch. So all processes together see exactly the images that one process would see. Images that
    are mixed come in pairs, which a share must not divide.

    All randomness comes from ``generator``, which is on ``device``.
    """

    time_first = True

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
