"""The folder of a run: what lies in it when a run starts, and what the run leaves in it.

It holds ``metrics.jsonl`` (see :mod:`train.metrics`), ``data.json``, which images it was tested on
(see :mod:`train.data.origin`), and the checkpoints ``last`` and ``best`` (see
:mod:`train.checkpoint`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from lbq_hw.train import checkpoint
from lbq_hw.train.config import Config, differences
from lbq_hw.train.data import InputSpec, Origin
from lbq_hw.train.metrics import Metrics
from lbq_hw.train.world import World


class RunError(ValueError):
    """A run that can not start or go on; the message is one sentence for the user."""


class RunFolder:
    """The folder as the first process writes to it; ``done`` epochs lie in it already.

    Members: `last`, the metrics of epoch ``done``, or empty.
    """

    def __init__(
        self,
        out: Path,
        config: Config,
        spec: InputSpec,
        classes: int,
        origin: Origin,
        *,
        done: int,
    ) -> None:
        self._out, self._shard_mib = out, config.train.shard_mib
        self._origin = {
            "data": origin.digest,
            "split": config.data.split,
            "revision": checkpoint.revision(),
            "config": config.to_dict(),
            "spec": dataclasses.asdict(spec),
            "classes": classes,
        }
        self._metrics = Metrics(out / "metrics.jsonl", done)
        self.last = self._metrics.last
        origin.write(out)

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
        whole = {"epoch": epoch, "accuracy": accuracy, **self._origin, **state}
        checkpoint.save(self._out, name, whole, shard_mib=self._shard_mib)


def previous(
    config: Config, out: Path, world: World, *, resume: bool, overwrite: bool
) -> dict[str, Any] | None:
    """The checkpoint to go on from, None where a new run begins.

    A run that lies in the folder is never lost by accident. One that was cut off before its first
    checkpoint begins again when it is to be resumed.
    """
    saved = world.agree((out / "last.json").is_file())
    if saved and resume:
        state = checkpoint.load(out, "last")
        if changed := differences(Config.from_dict(state["config"]), config):
            raise RunError(f"{out} was trained with {'; '.join(changed)}: it can not be resumed so")
        return state
    held = world.agree(_holds_run(out))
    if held and not (overwrite or resume):
        ways = "--resume, --overwrite" if saved else "--overwrite"
        raise RunError(f"{out} holds a run: add {ways} or another --out")
    if held and world.first:
        checkpoint.remove(out, "last")
        checkpoint.remove(out, "best")
    return None


def check_data(state: Mapping[str, Any], digest: str, out: Path, root: Path | None) -> None:
    """Refuse to go on from a checkpoint with other images or labels than it was trained on; one
    from before checkpoints said it is not refused."""
    if state.get("data", digest) != digest:
        where = "the digits" if root is None else str(root)
        raise RunError(
            f"{out} was trained on other images or labels than those of {where}: give --data with "
            "the same ones, or train in another --out"
        )


def _holds_run(out: Path) -> bool:
    """Whether a run, or what an interrupted one has left, lies in the folder."""
    files = (out / name for name in ("last.json", "best.json", "metrics.jsonl"))
    return any(file.is_file() and file.stat().st_size for file in files)
