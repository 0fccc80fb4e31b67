"""A tool as a child process: its log in a file, its last relevant lines when it fails."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from lbq_hw.tools import Found, logs

_POLL_SECONDS = 0.5


class ToolError(RuntimeError):
    """A tool that failed: a sentence, then the lines of its log that tell why."""


class StoppedError(RuntimeError):
    """What ran was ended because something beside it had failed."""


def call(
    found: Found,
    arguments: Sequence[str],
    *,
    folder: Path,
    log: Path,
    stopped: Event | None = None,
) -> None:
    """Run a tool in `folder` and keep all that it prints in `log`.

    ToolError if it fails; OSError if that was for want of space; StoppedError soon after `stopped`
    is set. Whatever ends the call early, an interrupt included, ends the tool too.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        file.write(f"$ {found.tool.name} {' '.join(arguments)}\n")
        file.flush()
        process = subprocess.Popen(
            [found.path, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            code = _wait(process, stopped or Event())
        finally:
            _end(process)
    if code:
        text = log.read_text(encoding="utf-8", errors="replace")
        if os.strerror(errno.ENOSPC) in text:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        ended = f"exit code {code}" if code > 0 else f"signal {-code}"
        what = logs.explanation(text) or f"failed ({ended})"
        lines = "\n".join(f"  {line}" for line in logs.relevant_lines(text))
        raise ToolError(f"{found.tool.name} {what}; its log is {log}\n{lines}")


def _wait(process: subprocess.Popen[bytes], stopped: Event) -> int:
    while not stopped.is_set():
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=_POLL_SECONDS)
    raise StoppedError("a step beside this one failed")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
        return
    process.kill()
    process.wait()
