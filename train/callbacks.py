"""Callbacks of `fit`, called only by the first process of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from lbq_hw.train.data import InputSpec
from lbq_hw.train.settings.recipe import Recipe


@dataclass(kw_only=True)
class Run:
    """A run as callbacks see it.

    Members: `model`, the network with the weights that are tested, in the form that is trained;
    `spec` and `recipe`; `out`, the run's folder, or None if nothing is written; `epoch`, the number
    of epochs done.
    """

    model: nn.Module
    spec: InputSpec
    recipe: Recipe
    out: Path | None
    epoch: int = 0


class Callback:
    """Called in the course of a run; a subclass overrides the methods that it needs."""

    def begin(self, run: Run) -> None:
        """Before the first epoch that is left to train."""

    def end_epoch(self, run: Run, line: dict[str, Any]) -> Mapping[str, float] | None:  # noqa: ARG002
        """After an epoch, with its line of metrics; returned metrics are added to the line, also
        in ``metrics.jsonl``."""
        return None

    def end(self, run: Run) -> None:
        """After the last epoch, or when the run stops early; not after an error."""


class Log(Callback):
    """Passes the metrics of every epoch to a function, as a dictionary: ``Log(wandb.log)``."""

    def __init__(self, log: Callable[[dict[str, Any]], object]) -> None:
        self._log = log

    def end_epoch(self, run: Run, line: dict[str, Any]) -> None:  # noqa: ARG002
        self._log(dict(line))


class TensorBoard(Callback):
    """Writes every number of the metrics as a scalar, for ``tensorboard --logdir FOLDER``.

    The default folder is ``tensorboard`` in the run's folder. If a run is resumed, values written
    after its checkpoint are hidden.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = folder

    def begin(self, run: Run) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "the callback TensorBoard needs tensorboard: pip install tensorboard"
            ) from None
        if self._folder is None and run.out is None:
            raise ValueError("give TensorBoard a folder: the run has none")
        folder = self._folder or Path(run.out or "") / "tensorboard"
        self._writer = SummaryWriter(str(folder), purge_step=run.epoch + 1 if run.epoch else None)

    def end_epoch(self, run: Run, line: dict[str, Any]) -> None:
        for name, value in line.items():
            if name != "epoch" and isinstance(value, int | float):
                self._writer.add_scalar(name, value, run.epoch)
        self._writer.flush()

    def end(self, run: Run) -> None:  # noqa: ARG002
        self._writer.close()
