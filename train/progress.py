"""The output of a run: a progress bar on a terminal, and one line per epoch everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich import progress
from rich.console import Console


class Progress:
    """A bar over all steps of a run, with loss, accuracy and the time left.

    ``live`` tells whether the bar is visible: if the output is not a terminal, only the lines of
    :meth:`report` are written; if ``shown`` is False, nothing is. ``split`` names the images on
    which epochs are tested.
    """

    def __init__(self, *, epochs: int, steps: int, done: int, split: str, shown: bool) -> None:
        console = Console(quiet=not shown, highlight=False, soft_wrap=True)
        self.live = shown and console.is_terminal
        self._epochs, self._steps, self._split = epochs, steps, split
        self._bar = progress.Progress(
            progress.TextColumn("epoch {task.fields[epoch]}/" + str(epochs)),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[figures]}"),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(elapsed_when_finished=False),
            console=console,
            disable=not self.live,
            transient=True,
        )
        self._task = self._bar.add_task(
            "", total=epochs * steps, completed=done * steps, epoch=done + 1, figures=""
        )
        self._done = done * steps

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def advance(self, figures: Sequence[float] | None) -> None:
        """One step was taken; ``figures`` are loss and accuracy so far, if they were read."""
        self._done += 1
        fields: dict[str, Any] = {"epoch": min(self._done // self._steps + 1, self._epochs)}
        if figures is not None:
            fields["figures"] = f"loss {figures[0]:.4f}  accuracy {figures[1]:.2f} %"
        self._bar.update(self._task, completed=self._done, **fields)

    def report(self, line: Mapping[str, Any]) -> None:
        """The line of an epoch's metrics."""
        width = len(str(self._epochs))
        test = line[f"{self._split}_accuracy"]
        words = [
            f"epoch {line['epoch']:{width}}/{self._epochs}",
            f"loss {line['loss']:.4f}",
            f"train {line['train_accuracy']:6.2f} %",
            f"{self._split}        -" if test is None else f"{self._split} {test:6.2f} %",
            f"lr {line['lr']:.2e}",
            f"{line['seconds']:.1f} s",
        ]
        if "gamma_min" in line:
            words.append(f"gamma {line['gamma_min']:.3f} to {line['gamma_max']:.3f}")
        self._bar.console.print("  ".join(words))
