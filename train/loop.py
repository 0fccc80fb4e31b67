"""A configured run: the data, the network and the recipe of a configuration, handed to `fit`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from lbq_hw.commands.progress import show_notes
from lbq_hw.train import checkpoint, start
from lbq_hw.train.batches import Batches
from lbq_hw.train.callbacks import Callback
from lbq_hw.train.fitting import fit
from lbq_hw.train.run_folder import Record, RunError, check
from lbq_hw.train.settings.config import Config
from lbq_hw.train.world import World


def train(
    config: Config,
    out: Path,
    *,
    data: Path | None = None,
    download: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    max_seconds: float = math.inf,
    callbacks: Sequence[Callback] = (),
) -> dict[str, Any]:
    """Train until the last epoch, or until another one would not fit into ``max_seconds``.

    ``data`` is the folder of the dataset's files, by default ``data/NAME``; the digits have none.
    Returns the last line of the metrics with ``finished`` and ``best_accuracy`` added.
    """
    with World.join(config.train.device) as world:
        check(config.to_dict(), out, world, resume=resume, overwrite=overwrite)
        if config.train.threads:
            torch.set_num_threads(config.train.threads)
        root = data or config.data.default_root
        batches = Batches.load(config, root, world, download=download)
        if world.first:
            show_notes(batches.origin.notes)
        if config.train.init and config.data.validation and _has_seen(config):
            raise RunError(
                f"train.init = {config.train.init!r} has trained on images that data.validation "
                "holds out"
            )
        torch.manual_seed(config.train.seed)
        fitted = fit(
            checkpoint.model_of(config, batches.spec, batches.classes),
            batches.spec,
            batches.train,
            batches.test,
            config.train,
            out=out,
            resume=resume,
            overwrite=overwrite,
            max_seconds=max_seconds,
            callbacks=callbacks,
            trained_only=True,
            world=world,
            record=Record(
                config=config.to_dict(),
                split=config.data.split,
                classes=batches.classes,
                origin=batches.origin,
                place="the digits" if root is None else str(root),
            ),
        )
    best = {"finished": fitted.finished, "best_accuracy": fitted.best_accuracy}
    return fitted.metrics | best


def _has_seen(config: Config) -> bool:
    """Whether the run's start was, or may have been, trained on images that the run holds out."""
    init = config.train.init
    if start.is_network(init):
        meta = start.load_network(init)[0].meta
        data = meta.get("config", {}).get("data", {"name": meta.get("dataset")})
    else:
        data = checkpoint.index(Path(init), "last")["config"].get("data", {"name": None})
    return data["name"] in (config.data.name, None) and (
        data.get("validation", 0) < config.data.validation
    )
