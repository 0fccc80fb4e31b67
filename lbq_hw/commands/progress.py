"""What every command that goes through images shows: a progress bar, and notes on the images."""

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def image_bar() -> Progress:
    """A bar with the images done and the time left, on stderr, and only where it is a terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def show_notes(notes: Iterable[str]) -> None:
    """One line each on stderr."""
    for note in notes:
        print(f"warning: {note}", file=sys.stderr)
