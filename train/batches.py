"""The batches of a run: to train on, and to test on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from lbq_hw import datasets
from lbq_hw.datasets import Dataset
from lbq_hw.network import HeldOut
from lbq_hw.train.data import (
    DeviceLoader,
    InputSpec,
    Origin,
    held_out,
    hold_out,
    in_range,
    mean_levels,
    unseen,
)
from lbq_hw.train.data.augment import AugmentConfig, Pipeline
from lbq_hw.train.run_folder import RunError
from lbq_hw.train.settings.config import Config
from lbq_hw.train.world import World


class Refining(DeviceLoader):
    """A loader with mild augmentation after ``strong_epochs`` epochs.

    ``augment`` is the augmentation of these epochs, ``mild`` is the augmentation of the rest; None
    means no augmentation.
    """

    def __init__(
        self, *args: Any, mild: Pipeline | None, strong_epochs: int, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._strong, self._mild, self._strong_epochs = self.augment, mild, strong_epochs

    def set_epoch(self, epoch: int) -> None:
        """Choose the augmentation of an epoch, counted from 1."""
        self.augment = self._strong if epoch <= self._strong_epochs else self._mild


@dataclass(frozen=True, kw_only=True)
class Batches:
    """All images lie on the device as raw bytes; batches are gathered and augmented there.

    Members: `origin`, where the images come from; `train` and `test`, the loaders.
    """

    origin: Origin

    spec: InputSpec
    classes: int
    train: DeviceLoader
    test: DeviceLoader

    @classmethod
    def load(cls, config: Config, root: Path | None, world: World, *, download: bool) -> Batches:
        """Read the dataset, whose files lie in ``root``, and put it on the device."""
        recipe, device = config.train, world.device
        if recipe.batch % (recipe.accumulate * world.size):
            parts = recipe.accumulate * world.size
            raise RunError(f"train.batch must be a multiple of {parts} parts, not {recipe.batch}")
        train_set, test_set, origin = _datasets(config, root, world, download=download)
        spec = config.data.spec(train_set.shape, static=not train_set.temporal)
        train_set, test_set = in_range(train_set, spec), in_range(test_set, spec)
        origin = replace(origin, notes=(*train_set.notes, *origin.notes))
        mean = mean_levels(train_set) if config.augment.fill == "mean" else ()

        def pipeline(augment: AugmentConfig) -> Pipeline | None:
            if augment == AugmentConfig():
                return None
            made = Pipeline(augment, spec, classes=train_set.classes, mean=mean).to(device)
            if recipe.compile != "off":
                made.compile()
            return made

        loader = Refining(
            train_set,
            spec,
            batch=recipe.batch,
            device=device,
            augment=pipeline(config.augment),
            mild=pipeline(config.augment.mild()),
            strong_epochs=recipe.epochs - recipe.refine_epochs,
            shuffle=True,
            drop_last=True,
            generator=torch.Generator(device),
            rank=world.rank,
            world=world.size,
        )
        return cls(
            origin=origin,
            spec=spec,
            classes=train_set.classes,
            train=loader,
            test=DeviceLoader(test_set, spec, batch=recipe.eval_batch, device=device),
        )


def _datasets(
    config: Config, root: Path | None, world: World, *, download: bool
) -> tuple[Dataset, Dataset, Origin]:
    """Images to train on and images to test on; test images are the test split, or held out of the
    training split. Only the first process downloads, and the others wait for it.
    """
    name, options = config.data.name, config.data.options(config.neuron.timesteps)
    divided = root is None or datasets.is_divided(name, root)
    if not config.data.validation and not divided:
        raise RunError(
            f"{root} does not tell training and test images apart: hold some of them out with "
            "--set data.validation=N, or divide them into train and test"
        )
    if not world.first:
        world.agree(True)
    fetch = download and world.first
    whole = datasets.load(name, root, split="train", download=fetch, **options)
    digest, held = whole.digest(), None
    if config.data.validation:
        train_set, test_set = hold_out(whole, config.data.validation)
        if not divided:
            places = tuple(held_out(whole, config.data.validation).tolist())
            held = HeldOut(data=digest, count=len(whole), indices=places)
    else:
        train_set, test_set = whole, datasets.load(name, root, split="test", **options)
        digest = hashlib.sha256(f"{digest} {test_set.digest()}".encode()).hexdigest()
    if world.first:
        world.agree(True)
    missing = unseen(train_set)
    origin = Origin(
        digest=digest,
        held_out=held,
        class_names=whole.class_names,
        notes=() if missing is None else (missing,),
    )
    return train_set, test_set, origin
