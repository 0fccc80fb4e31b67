"""Shown by every command that processes images: a progress bar, and notes on the images."""

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def image_bar() -> Progress:
    """A bar on stderr with the images done and the time left, only if stderr is a terminal."""
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
    """Print one line per note on stderr."""
    for note in notes:
        print(f"warning: {note}", file=sys.stderr)
