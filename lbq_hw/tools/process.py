"""A tool as a child process: its log in a file, its last relevant lines when it fails."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lbq_hw.tools import Found, logs


class ToolError(RuntimeError):
    """A tool that failed: a sentence, then the lines of its log that tell why."""


def call(found: Found, arguments: Sequence[str], *, folder: Path, log: Path) -> None:
    """Run a tool in `folder` and keep all that it prints in `log`.

    ToolError if it fails; OSError if that was for want of space. Whatever ends the call early,
    an interrupt included, ends the tool too.
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
            code = process.wait()
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


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
        return
    process.kill()
    process.wait()
