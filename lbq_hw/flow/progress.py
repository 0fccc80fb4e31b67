"""Shows a running build: one line per step, with its time and its expected time."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from lbq_hw.flow.runner import Step
from lbq_hw.units import three_digits

_LONG = 10  # seconds: without a bar, a longer step is announced


class ConsoleDisplay:
    """Shows steps on a console, with a bar if it is a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description:10}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("of about {task.fields[expected]}"),
            TextColumn("[dim]{task.fields[meaning]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> ConsoleDisplay:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def start(self, step: Step, expected: float) -> None:
        """A step begins that should take `expected` seconds."""
        meaning = step.meaning.rstrip(".")
        if step.tools:
            meaning += " (a tool's first call takes a minute more)"
        self._tasks[step.name] = self._progress.add_task(
            step.name, total=None, expected=duration(expected), meaning=meaning
        )
        if not self._console.is_terminal and expected >= _LONG:
            self._console.print(f"{step.name:10} about {duration(expected):>6}  {meaning}")

    def done(self, step: Step, seconds: float, note: str, *, cached: bool) -> None:
        """A step is finished, or its product was there already."""
        if step.name in self._tasks:
            self._progress.remove_task(self._tasks.pop(step.name))
        time = "saved" if cached else duration(seconds)
        self._console.print(f"{step.name:10} {time:>8}  {note}", highlight=False, markup=False)


def duration(seconds: float) -> str:
    """Three digits, such as 1.23 s or 12.3 s; from 100 seconds on 3:05 min."""
    if seconds < 100:
        return f"{three_digits(seconds)} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"
