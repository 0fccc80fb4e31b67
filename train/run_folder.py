"""The folder of a run: checks at the start, and the files that the run writes.

It holds ``metrics.jsonl`` (see :mod:`train.metrics`), ``data.json`` on the images (see
:mod:`train.data.origin`), and the checkpoints ``last`` and ``best`` (see :mod:`train.checkpoint`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lbq_hw.commands.progress import show_notes
from lbq_hw.train import checkpoint
from lbq_hw.train.data import InputSpec, Origin
from lbq_hw.train.metrics import Metrics
from lbq_hw.train.settings.config import Config, differences
from lbq_hw.train.settings.recipe import Recipe
from lbq_hw.train.settings.schema import plain
from lbq_hw.train.world import World


class RunError(ValueError):
    """A run that cannot start or continue; the message is one sentence for the user."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The facts of a run in its checkpoints, besides the weights.

    Members: `config`, the sections of its configuration, only ``train`` for a run of `fit`;
    `split`, the name of the images on which it is tested; `classes` of a configured run; `origin`
    of its images and `place`, their name in errors, if known.
    """

    config: Mapping[str, Any]
    split: str = "test"
    classes: int | None = None
    origin: Origin | None = None
    place: str = ""


class RunFolder:
    """The folder, to which only the first process writes; it has ``done`` epochs already.

    Members: `last`, the metrics of epoch ``done``, or empty.
    """

    def __init__(
        self, out: Path, recipe: Recipe, spec: InputSpec, record: Record, *, done: int
    ) -> None:
        self._out, self._shard_mib = out, recipe.shard_mib
        self._facts = {
            "data": "" if record.origin is None else record.origin.digest,
            "split": record.split,
            "revision": checkpoint.revision(),
            "torch": str(torch.__version__),
            "config": dict(record.config),
            "spec": dataclasses.asdict(spec),
            "classes": record.classes,
        }
        self._metrics = Metrics(out / "metrics.jsonl", done)
        self.last = self._metrics.last
        if record.origin is not None:
            record.origin.write(out)

    def write(self, line: dict[str, Any]) -> None:
        """Add the metrics of an epoch."""
        self._metrics.write(line)

    def save_best(self, epoch: int, accuracy: float, model: nn.Module) -> None:
        """Replace the checkpoint ``best``: the weights that were tested."""
        self._save("best", epoch, accuracy, {"model": model.state_dict(), "ema": None})

    def save_last(self, epoch: int, accuracy: float | None, state: Mapping[str, Any]) -> None:
        """Replace the checkpoint ``last``: everything that the next epoch depends on."""
        self._save("last", epoch, accuracy, state)

    def _save(
        self, name: str, epoch: int, accuracy: float | None, state: Mapping[str, Any]
    ) -> None:
        whole = {"epoch": epoch, "accuracy": accuracy, **self._facts, **state}
        checkpoint.save(self._out, name, whole, shard_mib=self._shard_mib)


def check(
    record: Mapping[str, Any], out: Path, world: World, *, resume: bool, overwrite: bool
) -> bool:
    """Whether there is a checkpoint to continue from; `record` is the configuration of the new run.

    A run in the folder is never overwritten by accident. With `resume`, a run that stopped before
    its first checkpoint starts again.
    """
    saved = world.agree((out / "last.json").is_file())
    if saved and resume:
        old = _complete(checkpoint.index(out, "last")["config"])
        if old.keys() != record.keys():
            raise RunError(
                f"{out} was trained by {_BY[len(old) == 1]}, and cannot be resumed by "
                f"{_BY[len(record) == 1]}: choose another folder"
            )
        if changed := differences(old, record):
            raise RunError(f"{out} was trained with {'; '.join(changed)}: to resume it, keep these")
        return True
    if world.agree(_holds_run(out)) and not (overwrite or resume):
        ways = "--resume, --overwrite" if saved else "--overwrite"
        raise RunError(f"{out} holds a run: add {ways} or another --out")
    return False


_BY = {True: "fit", False: "python -m train"}


def _complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a checkpoint, with defaults for keys that are newer than it."""
    if "model" in config:
        return Config.from_dict(config).to_dict()
    return {"train": plain(dataclasses.asdict(Recipe.of(config["train"])))}


def previous(
    record: Record, out: Path, world: World, *, resume: bool, overwrite: bool
) -> dict[str, Any] | None:
    """The checkpoint to continue from, None if a new run starts; see `check`."""
    if check(record.config, out, world, resume=resume, overwrite=overwrite):
        state = checkpoint.load(out, "last")
        if record.origin is not None:
            check_data(state, record.origin.digest, out, record.place)
        if world.first and state.get("torch", torch.__version__) != str(torch.__version__):
            show_notes(
                [
                    f"{out} was trained with torch {state['torch']}, and this is "
                    f"{torch.__version__}: its next epochs may differ in their last bits"
                ]
            )
        return state
    if world.first:
        checkpoint.remove(out, "last")
        checkpoint.remove(out, "best")
    return None


def check_data(state: Mapping[str, Any], digest: str, out: Path, place: str) -> None:
    """Refuse to continue from a checkpoint with other images or labels than it was trained on. An
    old checkpoint that does not record them is not refused.
    """
    if state.get("data", digest) != digest:
        raise RunError(
            f"{out} was trained on other images or labels than those of {place}: give --data with "
            "the same ones, or train in another --out"
        )


def _holds_run(out: Path) -> bool:
    """Whether the folder has a run, or files of an interrupted run."""
    files = (out / name for name in ("last.json", "best.json", "metrics.jsonl"))
    return any(file.is_file() and file.stat().st_size for file in files)
